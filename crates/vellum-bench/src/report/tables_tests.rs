//! The shown columns of rows, and that they fit.

use std::path::Path;

use super::*;
use crate::conditions::Conditions;
use crate::report::{Better, Case};

fn row(filesystem: &str, way: &str, threads: u32) -> Case {
    Case { verified: true, ..Case::new("parallel writes") }
        .key("filesystem", filesystem)
        .key("file", "emptied")
        .key("way", way)
        .key("threads", threads)
        .metric("write", "GB/s", Better::Higher, vec![1.5, 2.5, 123.0])
        .metric("write and sync", "GB/s", Better::Higher, vec![0.5])
}

fn report(cases: Vec<Case>) -> Report {
    let conditions = Conditions::now(Path::new("/"), &vellum::Options::default());
    Report::new("write", conditions, 3, vec!["it rains".into()], cases)
}

#[test]
fn keys_that_differ_are_columns_and_the_others_stand_in_the_title() {
    let rows = [row("ext4", "pwrite", 1), row("ext4", "writev", 4), row("xfs", "pwrite", 1)];
    let table = report(rows.to_vec()).table();
    let tables = table.split("\n\n").collect::<Vec<&str>>();
    assert_eq!(tables.len(), 4, "conditions, two tables, the foot: {table}");
    let lines: Vec<&str> = tables[1].lines().collect();
    assert_eq!(lines[0], "parallel writes, ext4, file emptied, all verified");
    assert_eq!(words(lines[1]), "way threads write min … max write and sync");
    assert_eq!(words(lines[2]), "GB/s GB/s");
    assert_eq!(words(lines[3]), "pwrite 1 2.50 1.50 … 123 0.50");
    let title = "parallel writes, xfs, file emptied, way pwrite, all verified\n";
    assert!(tables[2].starts_with(title), "{table}");
    assert_eq!(tables[3], "warning: it rains\n");
}

#[test]
fn what_figures_say_has_a_column_at_the_end_and_is_kept_in_json() {
    let rows =
        [row("ext4", "pwrite", 1).finding("prepared is", "faster"), row("ext4", "writev", 1)];
    let report = report(rows.to_vec());
    let table = report.table();
    let lines: Vec<&str> = table.split("\n\n").nth(1).unwrap().lines().collect();
    assert!(lines[1].trim_end().ends_with("prepared is"), "{table}");
    assert!(
        lines[3].trim_end().ends_with("faster") && lines[4].trim_end().ends_with('–'),
        "{table}"
    );
    let read = Report::from_json(&report.to_json().unwrap()).unwrap();
    assert_eq!(read[0].cases, rows);
}

fn words(line: &str) -> String {
    line.split_whitespace().collect::<Vec<&str>>().join(" ")
}

#[test]
fn surplus_columns_stand_in_a_second_block_and_everything_fits() {
    let many = |way| {
        (0..12).fold(row("ext4", way, 1), |row, index| {
            row.metric(&format!("latency p{index}"), "microseconds", Better::Lower, vec![1e6])
        })
    };
    let mut rows = vec![many("pwrite"), many("a-way-with-a-long-name")];
    for (verified, said) in [(true, "all verified"), (false, "verified")] {
        rows[0].verified = verified;
        let table = report(rows.clone()).table();
        assert!(table.lines().skip(3).all(|line| line.chars().count() <= 100), "{table}");
        assert!(table.matches("a-way-with-a-long-name").count() >= 2, "{table}");
        assert_eq!(table.matches("latency").count(), 12, "{table}");
        assert_eq!((table.matches("verified").count(), table.matches(said).count()), (1, 1));
        let first = table.split("\n\n").nth(1).unwrap();
        assert!(first.contains(said), "{table}");
        let verdicts = first.lines().filter_map(|line| line.split_whitespace().last());
        assert_eq!(
            verdicts.filter(|word| ["no", "yes"].contains(word)).count(),
            match verified {
                true => 0,
                false => 2,
            }
        );
    }
}

#[test]
fn only_what_is_counted_has_no_decimals() {
    let row = |way: &str, extents: &[f64]| {
        Case { verified: true, ..Case::new("images").key("filesystem", "ext4").key("way", way) }
            .metric("extents", "", Better::Neither, extents.to_vec())
            .metric("time", "s", Better::Lower, vec![8.0])
    };
    let line = |rows: &[Case]| words(report(rows.to_vec()).table().lines().rev().nth(2).unwrap());
    assert_eq!(line(&[row("off", &[8.0, 9.0, 123_456.0])]), "off 9 8 … 123456 8.00");
    assert_eq!(line(&[row("off", &[8.0, 9.0])]), "off 8.50 8 … 9 8.00");
    assert_eq!(line(&[row("on", &[0.5]), row("off", &[8.0])]), "off 8.00 8.00 … 8.00 8.00");
}

#[test]
fn rows_without_numbers_say_why_and_equal_reasons_are_told_once() {
    let without = |threads, skipped: Option<&str>, failed: Option<&str>| Case {
        verified: false,
        metrics: Vec::new(),
        skipped: skipped.map(String::from),
        failed: failed.map(String::from),
        ..row("ext4", "pwrite", threads)
    };
    let mut rows: Vec<Case> = (1..=6).map(|n| without(n, Some("not here"), None)).collect();
    rows.push(without(7, None, Some("the disk is full")));
    let report = report(rows);
    let table = report.table();
    let title = "parallel writes, ext4, file emptied, way pwrite";
    assert!(
        table.contains(&format!("skipped {title}: 1; 2; 3; 4; and 2 more: not here")),
        "{table}"
    );
    assert!(table.contains(&format!("FAILED {title}: 7: the disk is full")), "{table}");
    assert_eq!(report.failures().count(), 1);
}

#[test]
fn what_is_written_as_json_is_read_as_it_was() {
    let report = report(vec![row("ext4", "pwrite", 1)]);
    let json = report.to_json().unwrap();
    let read = Report::from_json(&json).unwrap();
    assert_eq!(read[0].cases, report.cases);
    assert_eq!((read[0].format, read[0].suite.as_str(), read[0].rounds), (2, "write", 3));
    assert_eq!(read[0].conditions.kernel, report.conditions.kernel);
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    let metric = &value["rows"]["pwrite"]["metrics"]["write"];
    let spread = ["min", "median", "max"].map(|part| metric[part].as_f64().unwrap());
    assert_eq!((spread, metric["better"].as_str()), ([1.5, 2.5, 123.0], Some("higher")));
    let both = Report::all_to_json(&[read[0].clone(), report.clone()]).unwrap();
    assert_eq!(Report::from_json(&both).unwrap().len(), 2);
}

#[test]
fn what_is_no_report_is_refused_with_the_reason() {
    let json = report(Vec::new()).to_json().unwrap();
    let newer = json.replace("\"format\": 2", "\"format\": 3");
    let damaged = json.replace("\"rounds\": 3", "\"rounds\": \"many\"");
    for (text, reason) in [
        ("{\"format\": 1", "it is not JSON: EOF"),
        ("[]", "it is an empty list"),
        ("{\"jobs\": []}", "not a report of `vellum bench`"),
        ("3", "not a report of `vellum bench`"),
        (&newer, "it is a report in form 3, and this version reads forms 1 to 2"),
        (&damaged, "it is a damaged report: invalid type: string \"many\""),
    ] {
        let error = Report::from_json(text).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
}
