//! `vellum bench compare`, on files that are made up or made small.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::support::{Place, Ran, run};

/// A report with seven rounds of one figure, so many times as fast.
fn report(path: &Path, conditions: &Value, factor: f64) -> PathBuf {
    let noise = [1.0, 1.02, 0.99, 1.01, 0.985, 1.03, 1.005];
    let samples: Vec<f64> = noise.iter().map(|noise| noise * factor).collect();
    let metric = json!({"name": "speed", "unit": "GB/s", "better": "higher", "samples": samples});
    let keys = json!([{"name": "filesystem", "value": "ext4"}, {"name": "way", "value": "pwrite"}]);
    let case = json!({"table": "writes", "keys": keys, "metrics": [metric], "verified": true});
    let report = json!({"format": 1, "suite": "write", "conditions": conditions, "rounds": 7,
        "warnings": [], "cases": [case]});
    fs::write(path, report.to_string()).unwrap();
    path.to_path_buf()
}

/// The conditions of a run of the real thing.
fn conditions(place: &Place) -> Value {
    let dir = place.dir().to_str().unwrap();
    let small = ["--dir", dir, "--setting", "1x10x10", "--ways", "write", "--rounds", "1"];
    let json = run(&[&["bench", "append", "--json", "-"], &small[..]].concat(), b"").good();
    serde_json::from_str::<Value>(&json).unwrap()["conditions"].clone()
}

fn compare(options: &[&str], before: &Path, after: &Path) -> Ran {
    let files = [before.to_str().unwrap(), after.to_str().unwrap()];
    run(&[&["bench", "compare"], options, &files[..]].concat(), b"")
}

#[test]
fn what_got_slower_is_told_and_fails_only_if_asked_to() {
    let place = Place::new();
    let conditions = conditions(&place);
    let before = report(&place.dir().join("a.json"), &conditions, 1.2);
    let after = report(&place.dir().join("b.json"), &conditions, 1.0);
    let table = compare(&[], &before, &after).good();
    assert!(table.contains("1 worse") && table.contains("slower by 1.1"), "{table}");
    assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
    assert!(compare(&["--fail-on-slower", "30"], &before, &after).good().contains("slower"));
    let ran = compare(&["--fail-on-slower", "10"], &before, &after);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("write, writes, ext4 pwrite: speed slower by 1.1"), "{ran:?}");
    compare(&["--fail-on-slower", "10"], &after, &before).good();
    let same = compare(&["--changed", "--fail-on-slower", "0"], &before, &before).good();
    assert!(same.contains("1 without a difference") && !same.contains("pwrite"), "{same}");
    let json = compare(&["--json", "-"], &before, &after).good();
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["rows"][0]["figures"][0]["verdict"], "worse");
    assert!(compare(&["--markdown", "-"], &before, &after).good().starts_with("# vellum bench"));
}

#[test]
fn a_file_that_is_no_report_is_named_with_what_is_wrong() {
    let place = Place::new();
    let file = place.dir().join("fio.json");
    for (text, complaint) in [
        ("hello", "fio.json: it is not JSON: expected value at line 1"),
        ("{\"jobs\": []}", "fio.json: it is JSON, but not a report of `vellum bench`"),
        ("{\"format\": 9, \"suite\": \"write\"}", "fio.json: it is a report in form 9"),
        ("{\"format\": 1, \"suite\": \"write\"}", "fio.json: it is a damaged report: missing"),
    ] {
        fs::write(&file, text).unwrap();
        let ran = compare(&[], &file, &file);
        assert!(ran.complaint(1).contains(complaint), "{ran:?}");
    }
    let ran = compare(&[], Path::new("/nonexistent.json"), &file);
    assert!(ran.complaint(1).contains("/nonexistent.json: No such file"), "{ran:?}");
}

#[test]
fn nothing_to_judge_is_not_passed_over_in_silence() {
    let place = Place::new();
    let dir = place.dir().to_str().unwrap();
    let small = ["--dir", dir, "--setting", "1x10x10", "--ways", "write", "--rounds", "2"];
    let file = place.dir().join("small.json");
    let to = ["--json", file.to_str().unwrap()];
    run(&[&["bench", "append"], &small[..], &to[..]].concat(), b"").good();
    let ran = compare(&["--fail-on-slower", "5"], &file, &file);
    assert!(ran.stderr.contains("no figure could be judged"), "{ran:?}");
    assert!(ran.text().contains("not sure ("));
}
