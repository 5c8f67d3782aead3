//! Whole runs, short.

use super::*;
use crate::Silent;
use crate::error::ErrorKind;
use crate::report::Metric;

fn small(dir: &std::path::Path) -> Config {
    let mut config = Config::quick(dir);
    config.rates = vec![5_000];
    config.commit_rates = vec![200];
    config.bytes = vec![40];
    config.writers = vec![1, 3];
    config.committers = vec![3];
    config.duration = Duration::from_millis(100);
    config
}

#[test]
fn every_way_is_timed_and_every_record_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let report = small(dir.path()).run(&mut Silent).unwrap();
    // Five ways, one writer and three, two readers; and two ways that make records durable.
    assert_eq!(report.cases.len(), 5 * 2 * 2 + 2);
    for case in &report.cases {
        assert!(case.verified && case.failed.is_none(), "{case:?}");
        let sample = |name: &str| case.figure(name).map(|metric: &Metric| metric.samples[0]);
        let is_commit = case.value("reader").is_none();
        let times: &[&str] = if is_commit { &["durable"] } else { &["seen", "returned"] };
        for time in times {
            let quantile = |name: &str| sample(&format!("{time} {name}")).unwrap();
            assert!(quantile("p50") <= quantile("p99") && quantile("p99") <= quantile("max"));
        }
        assert_eq!(case.series.len(), times.len());
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "the run leaves nothing");
}

#[test]
fn a_writer_that_is_held_up_is_late_for_all_that_was_due_meanwhile() {
    let load = Load {
        rate: 1000,
        bytes: 40,
        writers: 2,
        reader: Some(ReaderKind::Spinning),
        duration: Duration::from_secs(1),
    };
    assert_eq!(load.records(), 500);
    let millis = [(0, 0), (1, 0), (0, 1), (1, 1), (1, 499)];
    let due = millis.map(|(writer, sequence)| load.due_ns(writer, sequence) / 1_000_000);
    assert_eq!(due, [0, 1, 2, 3, 999], "the writers take turns");
}

#[test]
fn a_pipe_takes_no_records_that_it_would_tear() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = small(dir.path());
    config.ways = vec![LatencyWay::Pipe];
    config.bytes = vec![8192];
    let report = config.run(&mut Silent).unwrap();
    assert!(report.cases.iter().all(|case| case.skipped.is_some()));
}

#[test]
fn a_configuration_without_sense_is_refused() {
    let mut configs = vec![Config::new("."); 8];
    configs[0].ways.clear();
    configs[1].writers = vec![0];
    configs[2].bytes = vec![8];
    configs[3].duration = Duration::ZERO;
    configs[4].rates = vec![0];
    configs[5].rates = vec![1];
    configs[6].ways.push(LatencyWay::Write);
    configs[7].readers = vec![ReaderKind::Sleeping; 2];
    for config in configs {
        assert_eq!(config.run(&mut Silent).unwrap_err().kind(), ErrorKind::InvalidOption);
    }
}
