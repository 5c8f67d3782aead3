//! Every peer commits or logs and is read back, in small.

use std::rc::Rc;
use std::time::Duration;

use vellum_bench::commit::Config;
use vellum_bench::loggers as suite;
use vellum_bench::{Case, Silent, Suite};

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
