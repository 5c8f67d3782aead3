//! Small runs, and what is refused.

use super::*;
use crate::progress::Silent;

fn small(dir: &Path) -> Config {
    let mut config = Config::quick(dir);
    (config.logs, config.processes, config.segments) = (vec![1, 3], vec![1, 3], vec![1, 20]);
    (config.records, config.tables) =
        (600, vec![ScaleTable::Logs, ScaleTable::Processes, ScaleTable::Segments]);
    config
}

#[test]
fn every_table_has_its_rows_verified_and_nothing_is_left() {
    let dir = tempfile::tempdir().unwrap();
    let report = small(dir.path()).run(&mut Silent).unwrap();
    let rows = [("logs", 6), ("processes", 6), ("segments", 4)];
    for (key, count) in rows {
        let of_table = report.cases.iter().filter(|case| case.value(key).is_some());
        assert_eq!(of_table.count(), count, "{key}");
    }
    for case in &report.cases {
        assert!(case.verified && case.reason().is_none(), "{case:?}");
        assert!(!case.metrics.is_empty());
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn what_grows_is_a_multiple_of_the_first_number() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = small(dir.path());
    (config.tables, config.ways) = (vec![ScaleTable::Logs], vec![WayName::Write]);
    let report = config.run(&mut Silent).unwrap();
    let growth = |case: &Case| case.figure("open, growth").unwrap().samples.clone();
    assert_eq!(growth(&report.cases[0]), [1.0]);
    let opened = |case: &Case| case.figure("open").unwrap().samples[0];
    let expected = opened(&report.cases[1]) / opened(&report.cases[0]);
    assert_eq!(growth(&report.cases[1]), [expected]);
    let descriptors = report.cases[1].figure("descriptors").unwrap();
    assert_eq!(descriptors.samples, [1.0], "an open file is one descriptor");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let refused = |change: fn(&mut Config)| {
        let mut config = Config::quick("/nonexistent");
        change(&mut config);
        config.run(&mut Silent).unwrap_err().to_string()
    };
    let none = refused(|config| config.tables.clear());
    assert_eq!(none, "at least one table and one way are needed");
    let empty = refused(|config| config.logs.clear());
    assert_eq!(empty, "at least one number of logs is needed");
    let twice = refused(|config| config.logs = vec![1, 1]);
    assert_eq!(twice, "the number 1 is given twice");
    let many = refused(|config| config.processes = vec![2000]);
    assert_eq!(many, "2000 processes: there can be from 1 to 1000");
}

/// Goal: who reads one record does not pay for the number of files. Method: system calls of reads
/// at random, in a traced process.
#[test]
fn a_record_of_a_text_log_is_found_without_listing_the_directory_each_time() {
    use vellum::{Layout, Lsn, Options};
    const READS: u64 = 100;
    let calls = |layout: Layout| {
        let dir = tempfile::tempdir().unwrap();
        let options = Options::new().layout(layout).segment_capacity_bytes(4096);
        let log = options.create(true).open(dir.path().join("log")).unwrap();
        let places: Vec<Lsn> = (0..60).map(|_| log.append(&[b'x'; 3000]).unwrap()).collect();
        crate::trace::syscalls_per_record(LIMIT, &|stretch| {
            log.read_at(places[0]).unwrap();
            stretch.begin();
            for read in 0..READS {
                log.read_at(places[(read % 50) as usize]).unwrap();
            }
            stretch.end(READS);
            Ok(())
        })
        .unwrap()
    };
    let (framed, text) = (calls(Layout::Framed), calls(Layout::Text));
    assert!(text <= framed + 2.0, "{text} system calls for a line, {framed} for a frame");
}
