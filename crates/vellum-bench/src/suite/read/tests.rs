//! Small runs, and the findings of verification.

use std::fs::File;
use std::os::unix::fs::FileExt;

use super::*;
use crate::progress::Silent;

fn small(dir: &Path) -> Config {
    let mut config = Config::new(dir);
    (config.total_bytes, config.scope.rounds) = (1 << 20, 1);
    config
}

#[test]
fn every_way_reads_every_record_and_nothing_is_left() {
    let dir = tempfile::tempdir().unwrap();
    let report = small(dir.path()).run(&mut Silent).unwrap();
    assert_eq!(report.cases.len(), 2 * ReadWay::ALL.len());
    for case in &report.cases {
        assert!(case.verified && case.failed.is_none(), "{case:?}");
        assert_eq!(case.figure("time").unwrap().samples.len(), 1);
    }
    let ratio = |case: &&Case| case.figure("speed against lines").is_some();
    assert_eq!(report.cases.iter().filter(ratio).count(), 2 * 4);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_byte_that_was_changed_and_a_record_that_is_missing_are_found() {
    let load = Load { bytes: 64, total_bytes: 64 << 10 };
    for way in [ReadWay::Lines, ReadWay::Bytes, ReadWay::Pread] {
        let dir = tempfile::tempdir().unwrap();
        let mut stored = way.store(dir.path(), load).unwrap();
        let file = File::options().write(true).open(dir.path().join("file")).unwrap();
        load.verify(way, &mut stored, load.records()).unwrap();
        assert!(load.verify(way, &mut stored, load.records() - 1).is_err());
        file.write_all_at(b"~", 10 * 64 + 40).unwrap();
        let error = load.verify(way, &mut stored, load.records()).unwrap_err();
        assert!(error.to_string().starts_with("record 10 "), "{way}: {error}");
        file.set_len(load.total_bytes - 64).unwrap();
        assert!(load.verify(way, &mut stored, load.records()).is_err());
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let refused = |change: fn(&mut Config)| {
        let mut config = Config::new(".");
        change(&mut config);
        assert_eq!(config.run(&mut Silent).unwrap_err().kind(), crate::ErrorKind::InvalidOption);
    };
    refused(|config| config.bytes = vec![1]);
    refused(|config| config.bytes = vec![128, 128]);
    refused(|config| config.total_bytes = 100);
    refused(|config| config.ways.clear());
}
