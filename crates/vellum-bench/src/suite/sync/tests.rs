//! A run, small; and what verification finds.

use std::os::unix::fs::FileExt;

use super::*;
use crate::progress::Silent;

const BYTES: u64 = 16 * PIECE_BYTES as u64;

#[test]
fn all_ways_run_and_are_verified_and_nothing_is_left() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = Config::new(dir.path());
    (config.bytes, config.big_bytes, config.rounds) = (BYTES, Some(2 * BYTES), 2);
    let report = run(&config, &mut Silent).unwrap();
    assert_eq!(report.cases.len(), SyncWay::ALL.len() + 1);
    for case in &report.cases {
        assert_eq!(case.failed, None, "{}", case.case);
        assert_eq!(case.verified, case.skipped.is_none());
        let counted = if case.verified { 2 } else { 0 };
        assert_eq!(case.milliseconds.len(), counted, "no number without verification");
    }
    let big = report.cases.last().unwrap();
    assert_eq!((big.bytes, big.syncs, big.time_ratio_to_growing.len()), (2 * BYTES, 1, 0));
    let growing = &report.cases[0];
    assert_eq!((growing.syncs, growing.time_ratio_to_growing.as_slice()), (16, &[1.0, 1.0][..]));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_flipped_byte_and_a_wrong_length_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    write(SyncWay::Growing, &path, BYTES, 1).unwrap();
    verify(&path, BYTES, 1).unwrap();
    assert!(verify(&path, BYTES, 2).is_err(), "the pieces of another round");
    let file = File::options().write(true).open(&path).unwrap();
    file.write_all_at(b"~", 3 * PIECE_BYTES as u64 + 100).unwrap();
    assert!(verify(&path, BYTES, 1).unwrap_err().to_string().contains("piece 3"));
    file.set_len(BYTES - 1).unwrap();
    assert!(verify(&path, BYTES, 1).unwrap_err().to_string().contains("bytes and not"));
}

#[test]
fn names_are_read_as_they_are_written() {
    for way in SyncWay::ALL {
        assert_eq!(way.to_string().parse::<SyncWay>().unwrap(), way);
    }
    assert!("fast".parse::<SyncWay>().is_err());
}

#[test]
fn what_makes_no_sense_is_refused() {
    let mut config = Config::new(".");
    config.big_bytes = Some(5000);
    let error = run(&config, &mut Silent).unwrap_err();
    assert_eq!(error.kind(), crate::ErrorKind::InvalidOption);
}
