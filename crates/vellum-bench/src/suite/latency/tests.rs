//! Whole runs, short.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use rustix::process::{Pid, Signal, getpid, kill_process};

use super::channel::Channel;
use super::*;
use crate::Silent;
use crate::error::ErrorKind;
use crate::histogram::Histogram;
use crate::process::race;
use crate::report::Metric;
use crate::setting::Setting;
use crate::shared::Shared;

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
    // Eight ways, one writer and three, two readers; and two ways that make records durable.
    assert_eq!(report.cases.len(), 8 * 2 * 2 + 2);
    for case in &report.cases {
        assert!(case.verified && case.failed.is_none(), "{case:?}");
        let sample = |name: &str| case.figure(name).map(|metric: &Metric| metric.samples[0]);
        let is_commit = case.value("reader").is_none();
        let times: &[&str] = match (is_commit, case.value("way")) {
            (true, _) => &["durable", "above floor"],
            (false, Some("floor")) => &["returned", "above floor"],
            (false, _) => &["seen", "returned", "above floor"],
        };
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

/// How long a test stops a writer.
const STOP: Duration = Duration::from_millis(100);

/// Stops a process for [`STOP`] at least.
fn stop_and_continue(pid: Pid) {
    let is_stopped = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
        stat.unwrap().rsplit(") ").next().unwrap().starts_with('T')
    };
    kill_process(pid, Signal::STOP).unwrap();
    while !is_stopped() {
        thread::yield_now();
    }
    thread::sleep(STOP);
    kill_process(pid, Signal::CONT).unwrap();
}

/// Such a writer is in an append for less than a thousandth of its time.
#[test]
fn a_stop_of_the_writer_is_in_what_was_measured_and_not_above_the_floor() {
    let dir = tempfile::tempdir().unwrap();
    let duration = Duration::from_millis(300);
    let load = Load { rate: 1000, bytes: 64, writers: 1, reader: None, duration };
    for way in [LatencyWay::Floor, LatencyWay::VellumFramed] {
        let dir = dir.path().join(way.to_string());
        std::fs::create_dir(&dir).unwrap();
        let setting = Setting::new(1, load.records(), load.bytes);
        let channel = Channel::new(way, &vellum::Options::default(), &dir, &setting).unwrap();
        let (board, pid) =
            (round::Board::new(&load).unwrap(), Shared::<AtomicU64>::new(1).unwrap());
        race(2, Duration::from_secs(60), &|runner| match runner.index() {
            0 => {
                pid[0].store(getpid().as_raw_nonzero().get() as u64, Ordering::Release);
                round::append(runner, &load, &channel, &board)
            }
            _ => {
                let standing = runner.stand_ready()?;
                // The writer was ready too, so its number is there.
                let pid = Pid::from_raw(pid[0].load(Ordering::Acquire) as i32).unwrap();
                while board.latencies_of(0) < 20 {
                    thread::yield_now();
                }
                stop_and_continue(pid);
                runner.finish(standing, 1)
            }
        })
        .unwrap();
        let longest = |histogram: Histogram| histogram.quantile(1.0).unwrap();
        let half = STOP.as_nanos() as u64 / 2;
        assert!(longest(board.sample(&load).returned) > half, "{way}: it was stopped");
        assert!(longest(board.above_floor(&load)) < half, "{way}: the stop is not its own");
    }
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
