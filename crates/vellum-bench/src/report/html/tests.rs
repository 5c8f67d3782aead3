use std::path::Path;

use super::super::{Better, Case, Report, Series};
use super::*;
use crate::conditions::Conditions;

fn document(cases: Vec<Case>) -> Report {
    Report {
        format: 1,
        suite: "write".into(),
        conditions: Conditions::now(Path::new("/"), &vellum::Options::default()),
        rounds: 3,
        warnings: Vec::new(),
        cases,
    }
}

fn row(way: &str, samples: &[f64]) -> Case {
    let row = Case::new("simple").key("filesystem", "xfs").key("way", way);
    let mut row = row.metric("write", "GB/s", Better::Higher, samples.to_vec());
    row.verified = true;
    row
}

fn page(cases: Vec<Case>) -> String {
    let page = html(&[document(cases)]);
    assert!(!page.contains("=\"NaN") && !page.contains("=\"inf"), "{page}");
    page
}

fn count(page: &str, part: &str) -> usize {
    page.matches(part).count()
}

#[test]
fn hostile_text_stays_text() {
    let evil = "</script><script>alert(1)</script>\"'&<b onx=\"1\">";
    let mut document = document(vec![row(evil, &[1.0])]);
    document.suite = evil.into();
    document.warnings.push(evil.into());
    document.conditions.command_line.push(evil.into());
    let mut failed = Case::new(evil).key("filesystem", evil).key(evil, evil);
    failed.failed = Some(evil.into());
    failed.series.push(Series {
        name: evil.into(),
        x: evil.into(),
        y: evil.into(),
        points: vec![],
    });
    document.cases.push(failed);
    let page = html_with_recommendation(&[document], evil);
    assert!(!page.contains("<script>alert") && !page.contains("<b "), "{page}");
    // Those of the page itself: the program and the data.
    assert_eq!(count(&page, "<script"), 2);
    assert_eq!(count(&page, "</script>"), 2);
    assert!(page.contains("&lt;b onx=&quot;1&quot;"));
}

#[test]
fn the_data_are_inside_as_they_were() {
    let document = document(vec![row("a <b> & c", &[1.0, 2.0])]);
    let page = html(std::slice::from_ref(&document));
    let (_, rest) = page.split_once("id=\"data-0\">").unwrap();
    let (json, _) = rest.split_once("</script>").unwrap();
    let read = Report::from_json(json).unwrap();
    assert_eq!(read[0].cases, document.cases);
}

#[test]
fn nothing_at_all_is_a_page_too() {
    for page in [html(&[]), page(vec![])] {
        assert!(page.contains("Nothing: no case has a figure"), "{page}");
        assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>"));
    }
}

#[test]
fn what_has_no_figures_has_a_reason_and_no_chart() {
    let mut skipped = row("a", &[]);
    skipped.skipped = Some("no such call".into());
    let mut failed = row("b", &[]);
    failed.failed = Some("disk full".into());
    let page = page(vec![skipped.clone(), failed.clone()]);
    assert_eq!(count(&page, "<figure"), 0);
    assert!(page.contains("no such call") && page.contains("disk full"));
    assert!(page.contains("1 of 2 cases of write failed"));
    // Beside one that has, they stand in the chart too.
    let page = self::page(vec![skipped, failed, row("c", &[1.0])]);
    assert_eq!(count(&page, "class=\"bar\""), 3);
    assert!(page.contains("FAILED: disk full"));
}

#[test]
fn strange_numbers_do_no_harm() {
    let strange = [f64::NAN, f64::INFINITY, -f64::INFINITY, 0.0, -1.0, 1e-300, 1e300, 7.0];
    let mut rows: Vec<Case> =
        strange.iter().map(|value| row(&value.to_string(), &[*value])).collect();
    rows.push(row("mixed", &strange));
    for name in ["latency percentiles", "IOPS over time"] {
        let points = strange.iter().flat_map(|x| strange.map(|y| [*x, y])).collect();
        rows[0].series.push(Series { name: name.into(), x: "s".into(), y: "us".into(), points });
    }
    for row in &mut rows {
        *row = row.clone().key("chunk", row.keys[1].value.clone()).key("threads", "0");
    }
    let page = html(&[document(rows)]);
    let attributes = page.split("<section id=\"data\"").next().unwrap();
    let drawings =
        attributes.split("<svg").skip(1).map(|rest| rest.split("</svg>").next().unwrap());
    for drawing in drawings {
        assert!(!drawing.contains("=\"NaN") && !drawing.contains("=\"inf"), "{drawing}");
    }
}

#[test]
fn one_row_has_a_bar_and_nothing_to_compare() {
    let page = page(vec![row("pwrite", &[1.0, 2.0, 3.0])]);
    assert_eq!((count(&page, "<figure"), count(&page, "class=\"bar\"")), (1, 1));
    assert!(page.contains("nothing to compare"));
}

#[test]
fn rows_of_vellum_stand_out_in_tables_bars_and_findings() {
    let rows = ["vellum-text", "write", "VellumHandler"].map(|way| row(way, &[1.0, 2.0]));
    let page = page(rows.to_vec());
    assert_eq!((count(&page, "<tr class=\"own\">"), count(&page, "class=\"bar own\"")), (2, 2));
    assert_eq!((count(&page, "<tr>"), count(&page, "class=\"bar\"")), (1 + 2 + 1, 1));
    assert_eq!(count(&page, "<td class=\"own\""), 1, "the best");
    let others = self::page(vec![row("write", &[1.0, 2.0]), row("pwrite", &[1.0, 2.0])]);
    assert_eq!(count(&others, " own\"") + count(&others, "\"own\""), 0, "{others}");
}

#[test]
fn findings_come_before_tables_and_each_part_is_in_the_navigation() {
    let mut document = document(vec![row("a", &[1.0])]);
    document.warnings.push("a disk has its limits".into());
    let other = document.clone();
    let page = html(&[document, other]);
    let at = |part: &str| page.find(part).unwrap_or_else(|| panic!("no {part}: {page}"));
    let parts = ["<nav", "id=\"findings\"", "id=\"warnings\"", "id=\"section-0\""];
    let parts = [&parts[..], &["id=\"section-1\"", "id=\"conditions\"", "id=\"data\""]].concat();
    assert!(parts.windows(2).all(|two| at(two[0]) < at(two[1])), "{page}");
    for part in &parts[1..] {
        assert_eq!(count(&page, &format!("href=\"#{}", &part[4..])), 1, "{part}");
    }
    assert_eq!(count(&page, "write: a disk has its limits"), 1);
}

#[test]
fn two_runs_of_a_suite_on_one_filesystem_have_two_names() {
    let run = || document(vec![row("write", &[1.0])]);
    let page = html(&[run(), run(), run()]);
    for title in ["write on xfs", "write on xfs, run 2", "write on xfs, run 3"] {
        assert_eq!(count(&page, &format!("<h2>{title}</h2>")), 1, "{title}");
    }
}

#[test]
fn lines_are_drawn_over_what_grows() {
    let mut rows = Vec::new();
    for state in ["emptied", "preallocated", "written"] {
        for way in ["write", "pwrite", "stdio"] {
            for chunk in ["1 KiB", "64 KiB", "1 MiB"] {
                let row = row(way, &[1.0, 2.0]).key("state", state).key("chunk", chunk);
                rows.push(row);
            }
        }
    }
    let page = page(rows);
    // The bars, and a chart for each state.
    assert_eq!(count(&page, "<figure"), 4);
    assert_eq!(count(&page, "write by chunk, "), 2 * 3);
    assert_eq!(count(&page, "class=\"line "), 3 * 3);
}

#[test]
fn series_lie_over_each_other() {
    let series = |name: &str| Series {
        name: name.into(),
        x: "percentile".into(),
        y: "us".into(),
        points: vec![[50.0, 10.0], [99.0, 300.0], [100.0, 9000.0]],
    };
    let rows = ["a", "b"].map(|way| {
        let mut row = row(way, &[1.0]);
        row.series = vec![series("latency percentiles"), series("p99 over time")];
        row
    });
    let page = page(rows.to_vec());
    assert_eq!((count(&page, "<figure"), count(&page, "class=\"line ")), (3, 4));
    assert!(page.contains(">max<"));
}

#[test]
fn two_hundred_rows_and_long_names_stay_in_bounds() {
    let name = |index| format!("way-{index:03}-{}", "of-a-very-long-name".repeat(6));
    let rows: Vec<Case> = (0..200)
        .map(|index| row(&name(index / 4), &[f64::from(index)]).key("threads", 1 << (index % 4)))
        .collect();
    let page = page(rows);
    assert!(page.contains("the first 14 of 200"));
    assert_eq!(count(&page, "<tr>"), 200 + 2 + 1);
    assert!(page.contains("42 more, named in the table"));
}
