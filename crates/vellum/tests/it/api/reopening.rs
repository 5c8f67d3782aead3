//! Opening a log that is there with each option: which ones refuse it, and which ones change
//! nothing.

use std::fs;
use std::time::Duration;

use vellum::{
    CommitPath, Compression, Create, DeviceWrite, ErrorKind, Fill, Layout, OnFull, OnStageFull,
    Options, Preallocate, Tuning,
};

use crate::support::{payloads, place, scratch};

/// For which logs an option is refused that says something else than the log.
#[derive(Clone, Copy, PartialEq)]
enum Refused {
    Never,
    Framed,
    Always,
}

use Refused::{Always, Framed, Never};

type Case = (&'static str, Options, Refused);

fn cases() -> Vec<Case> {
    let options = Options::default;
    let tuned = |tuning: Tuning| Options::default().tuning(tuning);
    let tuning = Tuning::new;
    let gzip = if cfg!(feature = "gzip") { Compression::Gzip } else { Compression::None };
    let path = CommitPath { write: DeviceWrite::Fdatasync, block_bytes: 4096, lanes: 1 };
    vec![
        ("application_tag", options().application_tag(7), Always),
        ("envelope", options().envelope(true), Always),
        ("mode", options().mode(0o600), Never),
        ("create", options().create(Create::New), Always),
        ("create", options().create(Create::Never), Never),
        ("read_only", options().read_only(true), Never),
        ("exclusive", options().exclusive(true), Never),
        ("file_link", options().file_link(true), Never),
        ("timeout", options().timeout(Duration::from_secs(60)), Never),
        ("rotate_bytes", options().rotate_bytes(1 << 30), Framed),
        ("rotate_every", options().rotate_every(Duration::from_secs(86_400)), Framed),
        ("rotate_offset", options().rotate_offset(Duration::from_secs(3600)), Framed),
        ("retain_bytes", options().retain_bytes(1 << 30), Never),
        ("retain_age", options().retain_age(Duration::from_secs(86_400)), Never),
        ("retain_files", options().retain_files(9), Framed),
        ("compress", options().compress(gzip), Framed),
        ("segment_capacity_bytes", tuned(tuning().segment_capacity_bytes(4096)), Never),
        ("segment_capacity_bytes", tuned(tuning().segment_capacity_bytes(1 << 30)), Never),
        ("preallocate", tuned(tuning().preallocate(Preallocate::Off)), Never),
        ("preallocate", tuned(tuning().preallocate(Preallocate::Sparse)), Never),
        ("preallocate", tuned(tuning().preallocate(Preallocate::Zeros)), Never),
        ("preallocate", tuned(tuning().preallocate(Preallocate::Recycle)), Never),
        ("fill", tuned(tuning().fill(Fill::Mapped)), Never),
        ("fill", tuned(tuning().fill(Fill::Pwrite)), Never),
        ("fill", tuned(tuning().fill(Fill::Staged)), Never),
        ("prefault_bytes", tuned(tuning().prefault_bytes(4096)), Never),
        ("mapped_bytes_max", tuned(tuning().mapped_bytes_max(4096)), Never),
        ("staged_segments_max", tuned(tuning().staged_segments_max(2)), Never),
        ("spare_segments_max", tuned(tuning().spare_segments_max(0)), Never),
        ("on_stage_full", tuned(tuning().on_stage_full(OnStageFull::Error)), Never),
        ("on_full", tuned(tuning().on_full(OnFull::Block)), Never),
        ("on_full", tuned(tuning().on_full(OnFull::Drop)), Framed),
        ("commit_path", tuned(tuning().commit_path(path)), Never),
        ("checkpoint_after_bytes", tuned(tuning().checkpoint_after_bytes(1)), Never),
        ("advice_from", tuned(tuning().advice_from(|_| panic!("not for this log"))), Never),
    ]
}

/// The names of the options, as the sources have them.
fn all_options() -> Vec<&'static str> {
    let sources = [
        include_str!("../../../src/options/mod.rs"),
        include_str!("../../../src/options/text.rs"),
        include_str!("../../../src/options/tuning.rs"),
    ];
    let lines = sources.into_iter().flat_map(str::lines);
    lines
        .filter_map(|line| line.strip_prefix("    pub fn ")?.split_once("(mut self, "))
        .map(|(name, _)| name)
        .filter(|name| *name != "tuning")
        .collect()
}

#[test]
fn the_cases_are_all_options() {
    let mut named: Vec<&str> = cases().iter().map(|case| case.0).collect();
    named.dedup();
    let mut all = all_options();
    assert!(all.len() > 20, "{all:?}");
    named.sort_unstable();
    all.sort_unstable();
    assert_eq!(named, all);
}

fn kinds() -> [Options; 4] {
    let small = |options: Options| options.tuning(Tuning::new().segment_capacity_bytes(64 << 10));
    [
        small(Options::wal()),
        small(Options::events()),
        small(Options::text()),
        small(Options::mapped_text()),
    ]
}

#[test]
fn an_option_refuses_no_log_but_one_that_the_program_would_misunderstand() {
    for kind in kinds() {
        for (name, options, refused) in cases() {
            let dir = scratch();
            let log = kind.open(place(&dir)).unwrap();
            log.append(b"before\n").unwrap();
            let (layout, stat) = (log.layout(), log.stat().unwrap());
            drop(log);
            let is_refused = refused == Always || refused == Framed && layout == Layout::Framed;
            for has_control in [true, false] {
                if !has_control {
                    fs::remove_file(place(&dir).join("control")).unwrap();
                }
                for reads in [true, false] {
                    if reads && name == "create" {
                        continue;
                    }
                    let answer = options.clone().read_only(reads).open(place(&dir));
                    let Ok(log) = answer else {
                        let error = answer.unwrap_err();
                        let kinds = [ErrorKind::InvalidOption, ErrorKind::AlreadyExists];
                        assert!(is_refused && kinds.contains(&error.kind()), "{name}: {error}");
                        continue;
                    };
                    assert!(!is_refused, "{layout} log: {name} {has_control}");
                    let now = log.stat().unwrap();
                    let shape = |stat: &vellum::stat::Stat| {
                        (stat.segment_capacity_bytes, stat.fill, stat.preallocate)
                    };
                    assert_eq!(shape(&now), shape(&stat), "{layout} log: {name}");
                    assert_eq!(payloads(&log)[0], b"before\n");
                }
            }
            let log = Options::default().open(place(&dir)).unwrap();
            log.append(b"behind\n").unwrap();
            assert_eq!(payloads(&log), [b"before\n", b"behind\n"], "{layout} log: {name}");
        }
    }
}

#[test]
fn a_layout_refuses_a_log_of_the_other() {
    for kind in kinds() {
        let dir = scratch();
        let layout = kind.open(place(&dir)).unwrap().layout();
        for other in kinds() {
            let fits = other.open(scratch().path().join("new")).unwrap().layout() == layout;
            match other.open(place(&dir)) {
                Ok(_) => assert!(fits),
                Err(error) => {
                    assert!(!fits && error.kind() == ErrorKind::InvalidOption, "{error}");
                    assert!(error.to_string().contains("framed"), "{error}");
                }
            }
        }
    }
}
