//! The report has the shape that it promises, as JSON and as a table.

use std::path::Path;

use super::super::Report;
use super::*;
use crate::conditions::Conditions;

fn case(name: &str, prepared: bool) -> Case {
    let samples = vec![0.123, 12.345, 1234.5];
    let latency = Latency {
        avg: 123_456.7,
        min: 807.41,
        max: 9_999_999.0,
        stddev: 12_345.6,
        outlier_percent: 12.34,
        p50: 100_000.0,
        p99: 999_999.0,
    };
    Case {
        case: name.to_string(),
        prepared,
        peer: false,
        filesystem: "btrfs".into(),
        scratch: true,
        bytes: 1 << 20,
        threads: 16,
        processes: 16,
        commits: 30_000,
        commits_per_second: vec![123_456.7],
        latency_us: Some(latency),
        round_latencies_us: vec![latency; 3],
        syncs_per_commit: vec![0.1234],
        ratio_to_limit: samples.clone(),
        ratio_to_best_peer: samples,
        files: Some(3),
        file_bytes: Some(1 << 30),
        extents: Some(65_536),
        cold_read_mib_per_second: Some(12_345.6),
        verified: true,
        skipped: None,
        failed: None,
    }
}

fn report(cases: Vec<Case>) -> Report<Case> {
    let conditions = Conditions::now(Path::new("/"), &vellum::Options::new());
    Report { suite: "commit", conditions, rounds: 5, warnings: Vec::new(), cases }
}

#[test]
fn every_figure_is_in_the_common_form() {
    let row = case("vellum", true).to_row();
    assert_eq!(row.table, "records of 1048576 B");
    let values: Vec<&str> = row.keys.iter().map(|key| key.value.as_str()).collect();
    let place = "btrfs, loop device in memory";
    assert_eq!(values, [place, "1048576", "16", "16", "vellum", "yes", "no"]);
    let median = |name: &str| {
        let metric = row.metrics.iter().find(|metric| metric.name == name);
        metric.unwrap_or_else(|| panic!("{name}: {row:?}")).spread().unwrap().median
    };
    assert_eq!((median("speed"), median("speed against direct-dsync")), (123_456.7, 12.345));
    assert_eq!((median("speed against the best peer"), median("syncs")), (12.345, 0.1234));
    assert_eq!((median("files"), median("file bytes")), (3.0, (1 << 30) as f64));
    assert_eq!((median("extents"), median("cold read")), (65_536.0, 12_345.6));
    assert_eq!((median("all commits"), median("latency p99")), (30_000.0, 999_999.0));
    let parts = ["avg", "min", "max", "stddev", "outliers", "p50", "p99"];
    let all = parts.map(|part| median(&format!("all latencies, {part}")));
    assert_eq!(all, [123_456.7, 807.41, 9_999_999.0, 12_345.6, 12.34, 100_000.0, 999_999.0]);
}

#[test]
fn the_table_fits_in_100_columns() {
    let mut cases = vec![case("bare-overwrite", true), case("bare-fallocate", false)];
    cases.push(Case { failed: Some("a long story ".repeat(30)), ..case("raft-engine", false) });
    cases.push(Case { skipped: Some("it has not a chance".into()), ..case("walrus", true) });
    let table = report(cases).table();
    assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
    assert!(table.contains("FAILED raft-engine") && table.contains("skipped walrus"), "{table}");
    assert!(table.contains("16 processes × 16 threads, btrfs"), "{table}");
}

#[test]
fn times_have_four_digits_that_count() {
    let texts = ["8.080us", "807.4us", "1.441ms", "25.00ms", "415.0ms", "2.917s"];
    assert_eq!([8.08, 807.41, 1441.2, 25_000.0, 415_000.0, 2_917_000.0].map(duration), texts);
}
