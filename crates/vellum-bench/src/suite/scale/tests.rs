//! Small runs, and refused options.

use super::*;
use crate::progress::Silent;
use vellum::{Create, Tuning};

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

/// Goal: reading one line does not cost more with the number of files. Method: system calls of
/// reads at random, in a traced process.
#[test]
fn a_line_is_found_by_as_few_calls_among_many_files_as_among_few() {
    let (few, many) = (calls_per_read(4), calls_per_read(300));
    assert!(many < few + 1.0, "{many} system calls among 300 files, {few} among 4");
}

/// System calls for a line of a text log, once each file has been looked for.
fn calls_per_read(files: u64) -> f64 {
    const READS: u64 = 200;
    let dir = tempfile::tempdir().unwrap();
    let options = vellum::Options::mapped_text().tuning(Tuning::new().segment_capacity_bytes(4096));
    let log = options.open(dir.path().join("log")).unwrap();
    let line = [&[b'x'; 2999], &b"\n"[..]].concat();
    let places: Vec<vellum::Lsn> = (0..files).map(|_| log.append(&line).unwrap()).collect();
    // Before the first line no newline is looked for, and the newest file is known.
    let closed = &places[1..places.len() - 1];
    let read = |at: u64| assert_eq!(log.read_at(closed[at as usize]).unwrap().payload, line);
    let work = |stretch: &crate::trace::Stretch| {
        read(0);
        stretch.begin();
        (0..READS).for_each(|at| read(at % closed.len() as u64));
        stretch.end(READS);
        Ok(())
    };
    crate::trace::syscalls_per_record(LIMIT, &work).unwrap()
}

/// Goal: recovery does not list the directory for each file. Method: as above; the log is made in
/// the traced process, because children of other tests would be present in one of this process.
#[test]
fn a_text_log_is_recovered_by_a_few_calls_for_each_file() {
    const FILES: u64 = 200;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let options = vellum::Options::mapped_text().tuning(Tuning::new().segment_capacity_bytes(4096));
    let line = [&[b'x'; 2999], &b"\n"[..]].concat();
    let calls = crate::trace::syscalls_per_record(LIMIT, &|stretch| {
        let log = options.clone().open(&path).unwrap();
        for _ in 0..FILES {
            log.append(&line).unwrap();
        }
        drop(log);
        std::fs::remove_file(path.join("control")).unwrap();
        stretch.begin();
        let log = options.clone().create(Create::Never).open(&path).unwrap();
        stretch.end(FILES);
        assert!(log.recovery().is_some());
        Ok(())
    });
    let calls = calls.unwrap();
    // Four of them keep the descriptor apart from those of the program.
    assert!(calls < 29.0, "{calls} system calls for each file");
}

/// Goal: joining a log does not cost more with the number of its segments. Method: as above.
#[test]
fn a_log_of_many_segments_is_joined_by_as_few_calls_as_one_of_few() {
    let calls = |segments: u64| {
        let dir = tempfile::tempdir().unwrap();
        let options = vellum::Options::default().tuning(Tuning::new().segment_capacity_bytes(4096));
        let log = options.clone().open(dir.path().join("log")).unwrap();
        for _ in 0..segments {
            log.append(&[b'x'; 3000]).unwrap();
        }
        let work = |stretch: &crate::trace::Stretch| {
            stretch.begin();
            let joined = options.clone().create(Create::Never).open(dir.path().join("log"));
            stretch.end(1);
            joined.map(drop).map_err(|error| crate::ways::vellum_log::failed(&error))
        };
        crate::trace::syscalls_per_record(LIMIT, &work).unwrap()
    };
    let (few, many) = (calls(4), calls(300));
    assert!(many <= few, "{many} system calls with 300 segments, {few} with 4");
}
