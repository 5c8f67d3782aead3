//! The report has the shape that it promises, as JSON and as a table.

use std::path::Path;

use serde_json::Value;

use super::*;
use crate::conditions::Conditions;

fn case(name: &str, prepared: bool) -> Case {
    let spread = Some(Spread { min: 0.123, median: 12.345, max: 1234.5 });
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
        commits_per_second: Some(123_456.7),
        commits_per_second_spread: spread,
        latency_us: Some(latency),
        syncs_per_commit: Some(0.1234),
        ratio_to_limit: spread,
        ratio_to_best_peer: spread,
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
fn json_has_the_promised_shape() {
    let json = report(vec![case("vellum", true)]).to_json().unwrap();
    let json: Value = serde_json::from_str(&json).unwrap();
    let case = &json["cases"][0];
    for key in ["filesystem", "bytes", "threads", "processes", "prepared", "case", "extents"] {
        assert!(!case[key].is_null(), "{key}: {case}");
    }
    for key in ["files", "file_bytes", "syncs_per_commit", "ratio_to_best_peer", "verified"] {
        assert!(!case[key].is_null(), "{key}: {case}");
    }
    assert!(case["commits_per_second"].is_number() && case["cold_read_mib_per_second"].is_number());
    for key in ["avg", "p50", "p99", "max"] {
        assert!(case["latency_us"][key].is_number(), "{key}: {case}");
    }
    for key in ["min", "median", "max"] {
        assert!(case["ratio_to_limit"][key].is_number(), "{key}: {case}");
    }
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
