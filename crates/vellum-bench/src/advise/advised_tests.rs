//! A small run, and what is made of it.

use super::super::traps::Severity;
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

#[test]
fn it_is_said_how_long_a_commit_takes() {
    let advised = small_run(&[Purpose::Wal]);
    let it = &advised.recommendations[0];
    assert_eq!(it.commit_times.len(), 2);
    assert!(it.commit_times.iter().all(|one| one.p50_us > 0.0 && one.p99_us >= one.p50_us));
    assert!(advised.text().contains("A commit takes p50 "), "{}", advised.text());
    let chosen = advised.report.cases.iter().find(|row| row.value("way") == it.way.as_deref());
    let p99 = chosen.unwrap().figure("p99, 1 thread").unwrap();
    assert_eq!((p99.unit.as_str(), p99.samples.len()), ("us", 5));
}

#[test]
fn that_the_machine_was_busy_is_said_first_and_a_note_asks_for_nothing() {
    let mut advised = small_run(&[Purpose::Log]);
    advised.report.warnings = vec!["the machine was busy".into()];
    let trap = |severity, what: &str, remedy: &str| Trap {
        severity,
        cause: crate::Cause::NoFua,
        what: what.into(),
        remedy: remedy.into(),
    };
    advised.traps =
        vec![trap(Severity::Cost, "it is full", "make room"), trap(Severity::Note, "no FUA", "")];
    let text = advised.text();
    assert!(text.starts_with("To be taken with care: the machine was busy\n"), "{text}");
    assert_eq!(text.matches("the machine was busy").count(), 1, "{text}");
    assert!(text.contains("\nBeware:\n- cost: it is full. What to do: make room\n"), "{text}");
    assert!(text.contains("\nGood to know:\n- no FUA\n"), "{text}");
    advised.traps.remove(0);
    assert!(!advised.text().contains("Beware"), "{}", advised.text());
    let markdown = advised.to_markdown();
    assert!(markdown.contains("## Good to know\n\n- no FUA\n"), "{markdown}");
    assert!(markdown.find("busy") < markdown.find("## For a log"), "{markdown}");
}
