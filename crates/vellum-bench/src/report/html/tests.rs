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
    // Beside one that has, they are in the chart too.
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

/// The rows of the findings, each as its cells.
fn findings(page: &str) -> Vec<String> {
    let part = page.split("id=\"findings\"").nth(1).unwrap().split("</section>").next().unwrap();
    let rows = part.split("<tr>").skip(1).filter(|row| row.contains("data-label"));
    let bare = |row: &str| {
        row.split('<').filter_map(|part| part.split_once('>')).fold(
            String::new(),
            |cells, (tag, text)| {
                let end = if tag.starts_with("/td") { "|" } else { "" };
                cells + end + text
            },
        )
    };
    rows.map(bare).collect()
}

#[test]
fn how_sure_it_is_belongs_to_the_rival_that_is_named() {
    let rows = [
        row("fast", &[12.0, 12.5, 12.4, 12.6, 12.2]),
        row("as-fast", &[12.1, 12.4, 12.5, 12.3, 12.6]),
        row("slow", &[1.0, 1.1, 1.0, 1.2, 1.1]),
    ];
    let [found] = &findings(&page(rows.to_vec()))[..] else { panic!() };
    assert!(found.contains("|fast, as good: as-fast|12.4 GB/s|"), "{found}");
    assert!(found.contains("× better than slow|clear|"), "{found}");
    let [found] = &findings(&page(rows[..2].to_vec()))[..] else { panic!() };
    assert!(found.contains("|no difference seen|within noise|"), "{found}");
}

#[test]
fn loads_are_no_rivals_in_findings_and_bars() {
    let of = |suite: &str, key: &str, loads: [&str; 3]| {
        let rows = ["write", "vellum-text"]
            .into_iter()
            .flat_map(|way| loads.map(|load| row(way, &[1.0, 1.1, 1.0, 1.2, 1.1]).key(key, load)));
        html(&[Report { suite: suite.into(), ..document(rows.collect()) }])
    };
    for (suite, key, loads) in [
        ("scale", "logs", ["3", "10", "1000"]),
        ("latency", "rate", ["100/s", "1000/s", "10000/s"]),
        ("latency", "threads", ["2", "4", "8"]),
        ("commit", "threads", ["2", "4", "16"]),
    ] {
        let page = of(suite, key, loads);
        let found = findings(&page);
        assert_eq!(found.len(), 2, "{suite}: the least and the greatest load: {found:?}");
        for (found, load) in found.iter().zip([loads[0], loads[2]]) {
            let (what, rest) = found.split_once('|').unwrap();
            assert!(what.contains(load) && !rest.contains(load), "{suite}: {found}");
        }
        // Two of each chart of bars: one for the least load, and one for the greatest.
        assert_eq!(count(&page, "class=\"bar\"") + count(&page, "class=\"bar own\""), 4);
        assert_eq!(count(&page, &format!("Bars of write, {}", loads[0])), 1, "{page}");
    }
}

#[test]
fn findings_that_fill_more_than_a_screen_are_behind_a_fold() {
    let of = |suite: &str, tables: usize| {
        let rows = (0..tables).map(|index| {
            let table = format!("table {index}");
            Case { table, ..row("write", &[1.0, 2.0]) }
        });
        Report { suite: suite.into(), ..document(rows.collect()) }
    };
    let page = html(&[of("append", 30), of("read", 2)]);
    let (first, rest) = page.split_once("<details").unwrap();
    assert_eq!((findings(first).len(), findings(&page).len()), (2, 32));
    assert!(first.contains("read: table 0") && rest.contains("read: table 1"));
    assert!(rest.contains("30 more findings"));
    assert_eq!(count(&html(&[of("append", 10)]), "<details"), 0);
}

#[test]
fn what_is_to_be_taken_with_care_is_said_once() {
    let of = |suite: &str, warnings: &[&str]| {
        let warnings = warnings.iter().map(ToString::to_string).collect();
        Report { suite: suite.into(), warnings, ..document(vec![row("write", &[1.0])]) }
    };
    let load = |load: f64| {
        format!("the load average was {load:.2} before the start: other work shares the 2 cores")
    };
    let slow = |way: &str, times: f64| {
        format!("{way} 4x10x100: the slowest round took {times} times as long as the fastest")
    };
    let page = html(&[
        of("append", &[&load(0.62), &slow("write", 1.5), &slow("stdio", 2.8)]),
        of("commit", &[&load(1.27)]),
        of("commit", &[&load(0.9), "a disk has its limits"]),
    ]);
    let care = page.split("id=\"warnings\"").nth(1).unwrap().split("</section>").next().unwrap();
    let said: Vec<&str> =
        care.split("<li>").skip(1).map(|item| item.split('<').next().unwrap()).collect();
    assert_eq!(
        said,
        [
            "append, commit: the load average was 0.62 … 1.27 before the start: other work shares \
             the 2 cores",
            "append: write 4x10x100; stdio 4x10x100: the slowest round took 1.5 … 2.8 times as long \
             as the fastest",
            "commit: a disk has its limits",
        ]
    );
}

#[test]
fn a_quantity_of_commits_has_one_column() {
    let row = row("write", &[1.0])
        .metric("latency p50", "us", Better::Lower, vec![121.0, 122.0])
        .metric("all latencies, p50", "us", Better::Lower, vec![122.0])
        .metric("all latencies, max", "us", Better::Lower, vec![900.0]);
    let page = page(vec![row]);
    assert!(!page.split("id=\"data\"").next().unwrap().contains("all latencies, p50"));
    assert!(page.contains("all latencies, max"));
}

#[test]
fn the_findings_can_be_read_in_a_terminal_too() {
    let rows = [row("fast", &[12.0, 12.5, 12.4, 12.6, 12.2]), row("slow", &[1.0; 5])];
    let text = findings_text(&[document(rows.to_vec())]);
    assert_eq!(text, "write: simple, xfs: fast, 12.4 GB/s; 12.4 × better than slow (clear)\n");
    let many = (0..30).map(|index| {
        let table = format!("table {index}");
        Case { table, ..row("write", &[1.0, 2.0]) }
    });
    let text = findings_text(&[document(many.collect())]);
    assert!(text.contains("29 more findings are in the report (--html)"), "{text}");
    assert_eq!(findings_text(&[document(vec![])]), "");
}
