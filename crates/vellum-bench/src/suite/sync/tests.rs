//! A run, small; and the findings of verification.

use std::os::unix::fs::FileExt;

use super::*;
use crate::progress::Silent;

const BYTES: u64 = 16 * BLOCK_BYTES;
const ONE: Cell = Cell { piece_bytes: BLOCK_BYTES, threads: 1 };

#[test]
fn all_ways_run_and_are_verified_and_nothing_is_left() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = Config::new(dir.path());
    (config.bytes, config.big_bytes, config.scope.rounds) = (BYTES, Some(2 * BYTES), 2);
    let report = config.run(&mut Silent).unwrap();
    assert_eq!(report.cases.len(), SyncWay::ALL.len() + 1);
    let samples = |case: &Case, name: &str| {
        case.figure(name).map_or_else(Vec::new, |figure| figure.samples.clone())
    };
    for case in &report.cases {
        assert_eq!(case.failed, None, "{case:?}");
        assert_eq!(case.verified, case.skipped.is_none());
        let counted = if case.verified { 2 } else { 0 };
        assert_eq!(samples(case, "time").len(), counted, "no number without verification");
    }
    let (growing, big) = (&report.cases[0], report.cases.last().unwrap());
    assert_eq!((big.value("bytes"), big.value("syncs")), (Some("131072"), Some("1")));
    assert_eq!(samples(big, "time against growing").len(), 0);
    assert_eq!(growing.value("syncs"), Some("16"));
    assert_eq!(samples(growing, "time against growing"), [1.0, 1.0]);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_flipped_byte_and_a_wrong_length_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    let verify = |round| stamped(&path, 0, BYTES, round).map_err(|error| error.to_string());
    let pieces = Pieces { way: SyncWay::Growing, cell: ONE, bytes: BYTES, is_big: false };
    pieces.write_to(&path, 1).unwrap();
    verify(1).unwrap();
    assert!(verify(2).is_err(), "the pieces of another round");
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.write_all_at(b"~", 3 * BLOCK_BYTES + 100).unwrap();
    assert!(verify(1).unwrap_err().contains("at byte 12288 is not there"));
    file.set_len(BYTES - 1).unwrap();
    assert!(verify(1).unwrap_err().contains("bytes and not"));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let mut config = Config::new(".");
    config.big_bytes = Some(5000);
    let error = config.run(&mut Silent).unwrap_err();
    assert_eq!(error.kind(), crate::ErrorKind::InvalidOption);
}

#[test]
fn each_thread_writes_its_share_in_pieces_of_each_size() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = Config::new(dir.path());
    (config.bytes, config.scope.rounds) = (BYTES, 1);
    config.pieces = vec![BLOCK_BYTES, 2 * BLOCK_BYTES];
    config.threads = vec![1, 4];
    let report = config.run(&mut Silent).unwrap();
    assert_eq!(report.cases.len(), 4 * SyncWay::ALL.len());
    let failed: Vec<_> = report.cases.iter().filter(|case| case.failed.is_some()).collect();
    assert!(failed.is_empty(), "{failed:?}");
    let last = |name: &str| report.cases.last().unwrap().value(name).map(String::from);
    assert_eq!(last("threads").as_deref(), Some("4"));
    assert_eq!(last("syncs").as_deref(), Some("4"), "one for each thread");
}

#[test]
fn pieces_and_threads_that_do_not_fit_are_refused_by_name() {
    let refused = |change: &dyn Fn(&mut Config)| {
        let mut config = Config::new(".");
        change(&mut config);
        config.run(&mut Silent).unwrap_err().to_string()
    };
    assert!(refused(&|config| config.pieces = vec![5120]).starts_with("pieces of 5120 bytes"));
    assert!(refused(&|config| config.threads = vec![0]).starts_with("0 threads"));
    assert!(refused(&|config| config.threads = vec![3]).ends_with("a multiple of 12288 can"));
    assert!(refused(&|config| config.threads = vec![2, 2]).contains("2 is given twice"));
}
