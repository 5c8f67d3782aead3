//! Files, exit codes, comparisons.

use std::fs;

use serde_json::Value;
use vellum_bench::Cause;

use super::support::{DOCTOR, RESULTS, against_schema, diagnosed, run};

#[test]
fn every_form_is_written_in_one_run() {
    let dir = tempfile::tempdir().unwrap();
    let place = |name: &str| dir.path().join(name).to_str().unwrap().to_string();
    let (json, junit, html) = (place("a.json"), place("a.xml"), place("a.html"));
    let files = ["--json", &json, "--junit", &junit, "--html", &html];
    let own = ["--p99", "1min", "--rate", "1000/s", "--bytes", "300", "--seconds", "1"];
    let data = place("");
    let output = run(&[&files[..], &own, &["--for", "sqlite,redis", &data]].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    for name in ["sqlite: ", "redis: ", "custom: good"] {
        assert!(text.contains(name), "{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    let value: Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
    against_schema(&value).unwrap();
    let junit = fs::read_to_string(&junit).unwrap();
    assert_eq!(junit.matches("<testcase ").count(), 3, "{junit}");
    let page = fs::read_to_string(&html).unwrap();
    assert!(page.contains("id=\"program-custom\"") && !page.contains("<script"), "{page}");
    let compared = run(&["compare", &json, &json]);
    assert_eq!(compared.status.code(), Some(0));
    let text = String::from_utf8(compared.stdout).unwrap();
    assert!(text.contains("custom: good in both"), "{text}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3);
}

#[test]
fn what_the_schema_does_not_say_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (good, _) = diagnosed(dir.path(), &[]);
    let changes: [fn(&mut Value); 4] = [
        |value| value["programs"][0]["verdict"] = "perhaps".into(),
        |value| value["more"] = 1.into(),
        |value| drop(value.as_object_mut().unwrap().remove("probe")),
        |value| value["programs"][0]["ticks"][0]["p99_us"] = "long".into(),
    ];
    for change in changes {
        let mut changed = good.clone();
        change(&mut changed);
        assert!(against_schema(&changed).is_err(), "{changed}");
    }
}

#[test]
fn what_makes_no_sense_is_a_usage_error() {
    for words in [
        &["--for", "oracle"][..],
        &["--rate", "5000/s"],
        &["--p99", "10ms", "--rate", "fast"],
        &["--quick", "--minutes", "2"],
        &["--accept", "bad-luck"],
        &["--for", "etcd,etcd", "--seconds", "1", "."],
        &["--json", "-", "--html", "-", "--seconds", "1", "."],
        &["compare", "a.json"],
    ] {
        assert_eq!(run(words).status.code(), Some(2), "{words:?}");
    }
    let output = run(&["--quick", "/nonexistent"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().contains("/nonexistent"));
}

#[test]
fn the_page_has_every_cause_with_its_name() {
    let page = include_str!("../../../../docs/doctor.md");
    let is_row = |cause: &Cause| page.contains(&format!("\n| `{cause}` | "));
    let missing: Vec<Cause> = Cause::ALL.into_iter().filter(|cause| !is_row(cause)).collect();
    assert_eq!(missing, []);
}

#[test]
fn what_both_schemas_define_is_the_same() {
    let [doctor, results] =
        [DOCTOR, RESULTS].map(|text| -> Value { serde_json::from_str(text).unwrap() });
    let definitions = doctor["$defs"].as_object().unwrap();
    let both = definitions.iter().filter(|(name, _)| !results["$defs"][name].is_null());
    let both: Vec<_> = both.collect();
    assert!(both.len() >= 4, "{both:?}");
    for (name, definition) in both {
        assert_eq!(definition, &results["$defs"][name], "{name}");
    }
}
