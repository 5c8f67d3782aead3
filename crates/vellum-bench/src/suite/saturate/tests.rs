//! Whole runs, short.

use super::*;
use crate::Silent;
use crate::error::ErrorKind;
use vellum::Tuning;

/// Many generations in a short time, and little of each log is kept.
fn small(dir: &std::path::Path) -> Config {
    let mut config = Config::new(dir);
    config.ways = vec![WayName::VellumFramed, WayName::VellumText, WayName::Write, WayName::Direct];
    config.processes = 3;
    config.bytes = 5000;
    config.duration = Duration::from_millis(1500);
    config.kept_bytes = Some(KEPT_BYTES_MIN);
    config.bytes_max = Some(256 << 20);
    config.vellum =
        vellum::Options::default().tuning(Tuning::new().segment_capacity_bytes(4 << 20));
    config
}

#[test]
fn every_way_is_cut_from_behind_and_what_is_kept_is_verified() {
    let dir = tempfile::tempdir().unwrap();
    let report = small(dir.path()).run(&mut Silent).unwrap();
    assert_eq!(report.cases.len(), 4);
    for row in report.cases.iter().filter(|row| row.skipped.is_none()) {
        assert!(row.verified && row.failed.is_none(), "{row:?}");
        let figure = |name: &str| {
            let metric = row.metrics.iter().find(|metric| metric.name == name);
            metric.map_or_else(|| panic!("{name} of {row:?}"), |metric| metric.samples[0])
        };
        assert!(figure("p50") <= figure("p99") && figure("p99") <= figure("max") * 1.04);
        let kept = (KEPT_BYTES_MIN >> 20) as f64;
        assert!(figure("disk") <= kept * 2.0 + 64.0, "{row:?}");
        assert_eq!(row.series.len(), 4);
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "the run leaves nothing");
}

/// With the last generation the log is cut for the first time, before the first generation: where
/// the first record of all was overtaken, nothing of the others is cut off.
#[test]
fn what_overtook_the_first_record_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = small(dir.path());
    config.ways.truncate(1);
    config.processes = 4;
    config.scope.rounds = 20;
    // One generation more than are kept.
    config.bytes_max = config.kept_bytes.map(|kept| kept + 1);
    let report = config.run(&mut Silent).unwrap();
    assert_eq!(report.failures().count(), 0, "{}", report.table());
}

#[test]
fn a_configuration_without_sense_is_refused() {
    let mut configs = vec![Config::new("."); 6];
    configs[0].ways.clear();
    configs[1].processes = 0;
    configs[2].bytes = 8;
    configs[3].duration = Duration::ZERO;
    configs[4].kept_bytes = Some(1);
    configs[5].ways.push(WayName::Write);
    for config in configs {
        assert_eq!(config.run(&mut Silent).unwrap_err().kind(), ErrorKind::InvalidOption);
    }
}
