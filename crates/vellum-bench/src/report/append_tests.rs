//! The report has the shape that it promises, as JSON and as a table.

use std::path::Path;

use serde_json::Value;

use super::super::Report;
use super::*;
use crate::conditions::Conditions;

fn case(name: WayName) -> Case {
    let samples = vec![123_456.7, 9_999_999.9, 12_345.6];
    Case {
        name,
        filesystem: "ext4".into(),
        scratch: false,
        processes: 1024,
        records: 99_999_999,
        bytes: 1 << 30,
        ns_per_record: samples.clone(),
        ratio_to_write: samples.clone(),
        syscalls_per_record: Some(0.000_123),
        syscalls_reason: None,
        page_faults_per_record: samples,
        verified: true,
        skipped: None,
        failed: None,
    }
}

fn report(cases: Vec<Case>) -> Report<Case> {
    let conditions = Conditions::now(Path::new("/"), &vellum::Options::new());
    Report { suite: "append", conditions, rounds: 5, warnings: Vec::new(), cases }
}

#[test]
fn json_has_the_promised_shape() {
    let json = report(vec![case(WayName::Write)]).to_json().unwrap();
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["suite"], "append");
    for key in ["machine", "kernel", "filesystem", "device", "writeback", "date", "vellum"] {
        assert!(json["conditions"].get(key).is_some(), "{key}");
    }
    assert!(json["conditions"]["filesystem"]["mount_options"].is_string());
    let case = &json["cases"][0];
    assert_eq!(case["table"], "1024 processes × 99999999 records × 1073741824 B");
    let keys = case["keys"].as_array().unwrap();
    let keys: Vec<&str> = keys.iter().map(|key| key["value"].as_str().unwrap()).collect();
    assert_eq!(keys, ["ext4", "1024", "99999999", "1073741824", "write"]);
    let metrics = case["metrics"].as_array().unwrap();
    let names: Vec<&str> = metrics.iter().map(|metric| metric["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["time", "speed against write", "syscalls", "page faults"]);
    assert_eq!(
        (&metrics[0]["unit"], &metrics[0]["median"]),
        (&"ns/record".into(), &123_456.7.into())
    );
    assert!(case["failed"].is_null() && case["skipped"].is_null());
}

#[test]
fn the_table_fits_in_100_columns() {
    let mut cases: Vec<Case> = WayName::ALL.into_iter().map(case).collect();
    cases[0].failed = Some("a long story ".repeat(30));
    cases[1].skipped = Some(String::from("the kernel forbids it"));
    let mut report = report(cases);
    report.warnings.push("spread is large ".repeat(20));
    let table = report.table();
    assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
    for name in WayName::ALL {
        assert!(table.contains(name.as_str()), "{table}");
    }
    assert!(table.contains("FAILED") && table.contains("skipped"), "{table}");
}

#[test]
fn failures_are_the_cases_that_failed() {
    let mut cases: Vec<Case> = WayName::ALL.into_iter().map(case).collect();
    cases[3].failed = Some(String::from("lost"));
    let report = report(cases);
    let failed: Vec<WayName> = report.failures().map(|case| case.name).collect();
    assert_eq!(failed, [WayName::ALL[3]]);
}
