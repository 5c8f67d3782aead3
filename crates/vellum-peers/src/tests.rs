//! Every peer commits or logs and is read back, in small.

use std::rc::Rc;
use std::time::Duration;

use vellum_bench::commit::Config;
use vellum_bench::foreign::{Foreign, Job, Part, Prepared, Program};
use vellum_bench::loggers as suite;
use vellum_bench::{Case, Setting, Silent, Suite, append, latency};

use super::java::System;

#[test]
fn every_peer_commits_and_is_verified() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = Config::new(dir.path());
    (config.bytes, config.threads, config.scope.rounds) = (vec![256, 65_536], vec![1, 3], 1);
    config.slice = Duration::from_millis(20);
    config.cases = super::all().iter().map(|peer| peer.name().to_string()).collect();
    config.cases.dedup();
    config.cases.push("direct-dsync".into());
    config.others = super::all().into_iter().map(Rc::from).collect();
    let report = config.run(&mut Silent).unwrap();
    assert_eq!(report.cases.len(), 4 * (super::all().len() + 1));
    for case in &report.cases {
        assert!(case.verified && case.figure("all commits").is_some(), "{case:?}");
    }
    let has_ratio = |case: &Case| case.figure("speed against the best peer").is_some();
    assert!(report.cases.iter().any(has_ratio));
}

#[test]
fn every_logger_writes_the_records_and_is_verified() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = suite::Config::new(dir.path());
    (config.bytes, config.threads) = (vec![16, 128, 5000], vec![1, 3]);
    (config.records, config.scope.rounds) = (3000, 1);
    config.others = super::loggers::all().into_iter().map(Rc::from).collect();
    let report = config.run(&mut Silent).unwrap();
    assert_eq!(report.cases.len(), 6 * (super::loggers::all().len() + 2));
    for row in &report.cases {
        assert!(row.verified || row.skipped.is_some(), "{row:?}");
        if row.skipped.is_some() {
            eprintln!("skipped: {row:?}");
        }
    }
}

#[test]
fn every_system_in_java_follows_the_schedule_and_is_verified() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = latency::Config::quick(dir.path());
    (config.rates, config.bytes, config.writers) = (vec![5000], vec![40], vec![2]);
    // A spinning reader takes the processors from the other tests.
    config.readers = vec![latency::ReaderKind::Sleeping];
    config.ways = vec![latency::LatencyWay::VellumText];
    config.others = System::ALL.into_iter().map(|one| Rc::new(one) as Rc<dyn Foreign>).collect();
    config.duration = Duration::from_millis(200);
    let report = config.run(&mut Silent).unwrap();
    assert_eq!(report.cases.len(), System::ALL.len() + 1);
    for case in &report.cases {
        let is_timed = case.figure("seen p50").is_some() && case.figure("returned p99").is_some();
        assert!(case.skipped.is_some() || case.verified && is_timed, "{case:?}");
    }
}

#[test]
fn many_machines_append_records_of_each_length() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = append::Config::quick(dir.path());
    config.ways.truncate(1);
    config.settings = [1, 4095].map(|bytes| Setting::new(2, 3000, bytes)).to_vec();
    config.others = vec![Rc::new(System::Chronicle)];
    config.scope.rounds = 1;
    let report = config.run(&mut Silent).unwrap();
    assert_eq!(report.cases.len(), 4);
    for case in &report.cases {
        assert!(case.skipped.is_some() || case.verified, "{case:?}");
    }
}

#[test]
fn a_record_that_is_not_what_was_appended_fails_the_system() {
    let chronicle = System::Chronicle;
    if let Some(why) = chronicle.missing() {
        eprintln!("skipped: {why}");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut config = append::Config::quick(dir.path());
    config.ways.clear();
    config.settings = vec![Setting::new(1, 100, 64)];
    config.others = vec![Rc::new(Liar)];
    let report = config.run(&mut Silent).unwrap();
    let failed = report.cases[0].failed.as_ref().unwrap();
    assert!(failed.contains("lost, torn, doubled or out of order"), "{failed}");
}

/// Its checker expects other records than its writers append.
#[derive(Debug)]
struct Liar;

impl Foreign for Liar {
    fn name(&self) -> &str {
        "liar"
    }

    fn prepare(&self, job: &Job) -> vellum_bench::Result<Box<dyn Prepared>> {
        let prepared = System::Chronicle.prepare(job)?;
        Ok(Box::new(LiarsRound { prepared, templates: job.dir.join("templates") }))
    }
}

struct LiarsRound {
    prepared: Box<dyn Prepared>,
    templates: std::path::PathBuf,
}

impl Prepared for LiarsRound {
    fn start(&self, part: Part) -> vellum_bench::Result<Box<dyn Program>> {
        if part == Part::Checker {
            let mut bytes = std::fs::read(&self.templates).unwrap();
            bytes[20] ^= 1;
            std::fs::write(&self.templates, bytes).unwrap();
        }
        self.prepared.start(part)
    }
}
