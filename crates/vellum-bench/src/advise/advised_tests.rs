//! A small run, and what is made of it.

use super::*;
use crate::advise::{Config, Purpose, run};
use crate::progress::Silent;

fn small_run(purposes: &[Purpose]) -> Advised {
    let dir = tempfile::tempdir().unwrap();
    let mut config = Config::new(dir.path());
    config.time = std::time::Duration::from_millis(500);
    config.purposes = purposes.to_vec();
    let advised = run(&config, &mut Silent).unwrap();
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    advised
}

#[test]
fn a_run_says_something_for_each_purpose_and_leaves_nothing() {
    let advised = small_run(&Purpose::ALL);
    let purposes: Vec<Purpose> = advised.recommendations.iter().map(|one| one.purpose).collect();
    assert_eq!(purposes, Purpose::ALL);
    for it in &advised.recommendations {
        assert!(it.way.is_some() && !it.settings.is_empty(), "{it:?}");
    }
    for row in &advised.report.cases {
        assert!(row.failed.is_none(), "{row:?}");
        assert!(row.verified != row.skipped.is_some() && row.verified != row.metrics.is_empty());
        assert!(row.metrics.iter().all(|metric| metric.samples.len() == 5), "{row:?}");
    }
    let text = advised.text();
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    assert!(advised.to_markdown().contains("## For a log that commits"));
    assert!(advised.to_html().contains("For a log that commits (wal): "));
}

#[test]
fn what_is_recommended_agrees_with_the_rows_in_the_json() {
    let advised = small_run(&[Purpose::Log, Purpose::File]);
    let json = advised.to_json().unwrap();
    let document = Report::from_json(&json).unwrap().remove(0);
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    for it in value["recommendations"].as_array().unwrap() {
        let purpose: Purpose = it["purpose"].as_str().unwrap().parse().unwrap();
        let rows = document.cases.iter().filter(|row| row.table == purpose.title());
        let rows: Vec<&Case> = rows.filter(|row| !row.metrics.is_empty()).collect();
        let chosen = rows.iter().find(|row| row.value("way") == it["way"].as_str()).unwrap();
        for row in &rows {
            let pairs = row.metrics[0].samples.iter().zip(&chosen.metrics[0].samples);
            let ratios: Vec<f64> = pairs.map(|(other, chosen)| other / chosen).collect();
            let median = crate::stats::Spread::of(&ratios).unwrap().median;
            let is_faster = ratios.iter().all(|ratio| *ratio > 1.0) && median >= 1.05;
            assert!(!is_faster, "{:?} beats {it}", row.keys);
        }
    }
}

#[test]
fn a_directory_that_is_not_there_is_told() {
    let error = run(&Config::new("/nonexistent"), &mut Silent).unwrap_err();
    assert!(error.to_string().contains("/nonexistent"), "{error}");
}
