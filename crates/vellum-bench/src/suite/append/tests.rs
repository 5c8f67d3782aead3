//! Whole runs on small settings, and runs whose data is damaged on purpose.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::*;
use crate::Silent;
use crate::error::ErrorKind;
use crate::report::Report;
use crate::ways::{Appender, Prepared};

const LIMIT: Duration = Duration::from_secs(120);

/// Small, but each kind of record, more processes than cores, and records larger than a page and
/// than the buffer of C streams.
const SMALL: [Setting; 6] = [
    Setting::new(4, 500, 128),
    Setting::new(4, 500, 1),
    Setting::new(3, 300, 5),
    Setting::new(4, 200, 4095),
    Setting::new(2, 100, 4096),
    Setting::new(3, 20, 70_001),
];

const VELLUM: [WayName; 3] = [WayName::VellumFramed, WayName::VellumText, WayName::VellumC];

/// Runs `ways` on small settings; every one of them must be run and verified.
fn run_small(ways: &[WayName]) -> Report {
    let dir = tempfile::tempdir().unwrap();
    let mut config = Config::new(dir.path());
    config.settings = SMALL.to_vec();
    config.ways = ways.to_vec();
    config.scope.rounds = 2;
    config.limit = LIMIT;
    let report = config.run(&mut Silent).unwrap();
    assert_eq!(report.cases.len(), ways.len() * SMALL.len());
    for case in report.cases.iter().filter(|case| case.skipped.is_none()) {
        assert_eq!(case.failed, None, "{case:?}");
        assert!(case.verified, "{case:?}");
        for name in ["time", "page faults"] {
            assert_eq!(case.figure(name).unwrap().samples.len(), 2, "{case:?}");
        }
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "the run leaves nothing");
    report
}

fn all_but_vellum() -> Vec<WayName> {
    WayName::ALL.into_iter().filter(|name| !VELLUM.contains(name)).collect()
}

#[test]
fn every_way_but_vellum_appends_and_verifies() {
    let report = run_small(&all_but_vellum());
    for case in &report.cases {
        let ratio = case.figure("speed against write");
        assert_eq!(ratio.is_none(), case.skipped.is_some(), "{case:?}");
        if case.name() == "write" {
            assert_eq!(ratio.unwrap().samples, [1.0, 1.0]);
        }
    }
    report.to_json().unwrap();
}

#[test]
fn vellum_appends_and_verifies() {
    run_small(&VELLUM);
}

#[test]
fn with_other_work_between_appends_every_way_verifies_and_tells_what_was_taken_off() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = Config::new(dir.path());
    config.settings = vec![Setting::new(2, 100, 128), Setting::new(1, 100, 1)];
    config.ways = all_but_vellum();
    config.ways.extend(VELLUM);
    (config.scope.rounds, config.limit, config.between_bytes) = (2, LIMIT, 64 << 10);
    let report = config.run(&mut Silent).unwrap();
    for case in report.cases.iter().filter(|case| case.skipped.is_none()) {
        assert!(case.verified && case.failed.is_none(), "{case:?}");
        assert_eq!(case.value("between bytes"), Some("65536"), "{case:?}");
        assert!(case.table.ends_with("B, 64 KiB between appends"), "{case:?}");
        for name in ["time", "clock, taken off"] {
            assert_eq!(case.figure(name).unwrap().samples.len(), 2, "{case:?}");
        }
    }
    config.between_bytes = 0;
    for case in config.run(&mut Silent).unwrap().cases {
        assert_eq!(case.value("between bytes"), None);
        assert!(case.figure("clock, taken off").is_none() && case.table.ends_with(" B"));
    }
}

#[test]
fn syscalls_are_what_each_way_is_known_to_make() {
    let known = BTreeMap::from([("write", 1.0), ("writev", 1.0), ("stdio", 1.0), ("aio", 2.0)]);
    let report = run_small(&[WayName::Write, WayName::Writev, WayName::Stdio, WayName::Aio]);
    for case in report.cases.iter().filter(|case| case.skipped.is_none()) {
        // Where tracing is forbidden there is a reason in place of the count.
        let uncounted = format!("no syscalls of {}", case.name());
        let is_told = report.warnings.iter().any(|warning| warning.starts_with(&uncounted));
        let syscalls = case.figure("syscalls");
        assert!(syscalls.is_some() || is_told, "{case:?}");
        if let Some(syscalls) = syscalls {
            // A little more is fine: a C library may ask about its file at the first write.
            let (known, syscalls) = (known[case.name().as_str()], syscalls.samples[0]);
            let records: f64 = case.value("records").unwrap().parse().unwrap();
            assert!(syscalls >= known && syscalls <= known + 4.0 / records, "{case:?}");
        }
    }
}

/// Appends well, then damages the file before it is read back.
struct Damaged {
    good: Box<dyn Way>,
    damage: fn(&Path),
}

struct DamagedLog {
    good: Box<dyn Prepared>,
    file: PathBuf,
    damage: fn(&Path),
}

impl Way for Damaged {
    fn prepare(&self, dir: &Path, setting: &Setting) -> Result<Box<dyn Prepared>> {
        let good = self.good.prepare(dir, setting)?;
        Ok(Box::new(DamagedLog { good, file: dir.join("log"), damage: self.damage }))
    }
}

impl Prepared for DamagedLog {
    fn open(&self, process: u32) -> Result<Box<dyn Appender>> {
        self.good.open(process)
    }

    fn read_back(&self, visit: &mut dyn FnMut(&[u8])) -> Result<()> {
        (self.damage)(&self.file);
        self.good.read_back(visit)
    }
}

/// The contents of a log after 4 × 100 × 128 B, changed by `damage`, must be refused.
fn refused(name: WayName, damage: fn(&Path)) -> String {
    let way = Damaged { good: name.way(&vellum::Options::default()), damage };
    let dir = tempfile::tempdir().unwrap();
    let result = round::measure(&way, &Setting::new(4, 100, 128), 0, dir.path(), LIMIT);
    result.unwrap_err().to_string()
}

fn edit(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = std::fs::read(path).unwrap();
    change(&mut bytes);
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn an_undamaged_log_is_accepted() {
    let way = Damaged { good: WayName::Write.way(&vellum::Options::default()), damage: |_| {} };
    let dir = tempfile::tempdir().unwrap();
    round::measure(&way, &Setting::new(4, 100, 128), 0, dir.path(), LIMIT).unwrap();
}

#[test]
fn a_file_that_lost_a_record_is_refused() {
    let cut_out = |path: &Path| edit(path, |bytes| drop(bytes.drain(1280..1408)));
    assert!(refused(WayName::Write, cut_out).contains("1 lost"));
    let cut_off = |path: &Path| edit(path, |bytes| bytes.truncate(bytes.len() - 128));
    assert!(refused(WayName::Write, cut_off).contains("1 lost"));
}

#[test]
fn a_file_with_a_torn_record_is_refused() {
    let tear = |path: &Path| {
        let file = OpenOptions::new().write(true).open(path).unwrap();
        file.write_all_at(&[0; 64], 1280 + 64).unwrap();
    };
    assert!(refused(WayName::Writev, tear).contains("1 torn"));
    let cut_off = |path: &Path| edit(path, |bytes| bytes.truncate(bytes.len() - 1));
    assert!(refused(WayName::Stdio, cut_off).contains("1 torn"));
}

#[test]
fn a_file_with_a_doubled_record_is_refused() {
    let double = |path: &Path| edit(path, |bytes| bytes.extend_from_within(1280..1408));
    assert!(refused(WayName::Write, double).contains("1 doubled"));
}

#[test]
fn a_file_with_records_out_of_order_is_refused() {
    // All records in reverse: the last ones of each process come first.
    let reverse = |path: &Path| {
        edit(path, |bytes| *bytes = bytes.rchunks(128).flatten().copied().collect());
    };
    let fault = refused(WayName::Write, reverse);
    assert!(fault.contains("396 out of order") && !fault.contains("lost"), "{fault}");
}

#[test]
fn dirt_in_the_padding_of_a_direct_log_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let direct = WayName::Direct.way(&vellum::Options::default());
    if direct.probe(dir.path()).is_ok() {
        let dirt = |path: &Path| edit(path, |bytes| bytes[4096 * 3 + 4000] = b'x');
        assert!(refused(WayName::Direct, dirt).contains("1 torn"));
    }
}

/// A way whose second process can't append.
struct Broken;

struct BrokenLog;

struct BrokenAppender {
    process: u32,
}

impl Way for Broken {
    fn prepare(&self, _dir: &Path, _setting: &Setting) -> Result<Box<dyn Prepared>> {
        Ok(Box::new(BrokenLog))
    }
}

impl Prepared for BrokenLog {
    fn open(&self, process: u32) -> Result<Box<dyn Appender>> {
        Ok(Box::new(BrokenAppender { process }))
    }

    fn read_back(&self, _visit: &mut dyn FnMut(&[u8])) -> Result<()> {
        panic!("nothing to verify when a process failed")
    }
}

impl Appender for BrokenAppender {
    fn append(&mut self, _record: &[u8]) -> Result<()> {
        if self.process == 1 { Err(Error::failed("the pen is dry")) } else { Ok(()) }
    }
}

#[test]
fn a_process_that_can_not_append_fails_the_case() {
    let dir = tempfile::tempdir().unwrap();
    let result = round::measure(&Broken, &Setting::new(3, 10, 128), 0, dir.path(), LIMIT);
    let error = result.unwrap_err().to_string();
    assert_eq!(error, "process 1 failed: the pen is dry (after 0 acknowledged records)");
}

#[test]
fn a_configuration_without_sense_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut configs = vec![Config::new(dir.path()); 6];
    configs[0].settings.clear();
    configs[1].ways.clear();
    configs[2].scope.rounds = 0;
    configs[3].settings[0].bytes = 0;
    configs[4].ways.push(WayName::Write);
    configs[5].between_bytes = 1 << 40;
    for config in configs {
        let error = config.run(&mut Silent).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidOption, "{error}");
    }
}

#[test]
fn a_directory_that_is_not_there_is_an_error_that_names_it() {
    let config = Config::new("/no/such/directory");
    let error = config.run(&mut Silent).unwrap_err().to_string();
    assert!(error.contains("/no/such/directory"), "{error}");
}
