//! Two runs, made up, against each other.

use std::path::Path;

use super::*;
use crate::conditions::Conditions;
use crate::report::Report;

const NOISE: [f64; 7] = [1.0, 1.02, 0.99, 1.01, 0.985, 1.03, 1.005];

fn row(way: &str, rounds: usize, factor: f64) -> Case {
    let speeds = NOISE[..rounds].iter().map(|noise| 2.0 * noise * factor).collect();
    let times = NOISE[..rounds].iter().map(|noise| 50.0 * noise / factor).collect();
    Case { verified: true, ..Case::new("writes") }
        .key("filesystem", "ext4")
        .key("way", way)
        .metric("speed", "GB/s", Better::Higher, speeds)
        .metric("p99", "us", Better::Lower, times)
        .metric("extents", "", Better::Neither, vec![factor; rounds])
}

fn run(cases: Vec<Case>) -> Vec<Report> {
    let conditions = Conditions::now(Path::new("/"), &vellum::Options::default());
    vec![Report::new("write", conditions, 7, Vec::new(), cases)]
}

fn compare(before: &[Report], after: &[Report]) -> Comparison {
    Comparison::of(("A.json", before), ("B.json", after))
}

fn ways(factor_of_mmap: f64, rounds: usize) -> Vec<Report> {
    run(vec![row("pwrite", rounds, 1.0), row("mmap", rounds, factor_of_mmap)])
}

#[test]
fn the_same_twice_is_no_difference() {
    let same = ways(1.0, 5);
    let comparison = compare(&same, &same);
    assert_eq!(comparison.figures().count(), 4);
    for change in comparison.figures() {
        assert_eq!((change.verdict, change.ratio), (Verdict::NoDifference, Some(1.0)));
    }
    assert!(comparison.conditions.is_empty() && comparison.notes.is_empty());
    let text = comparison.table(true);
    assert!(text.contains("4 figures: 0 better, 0 worse, 0 perhaps, 4 without"), "{text}");
    assert!(!text.contains("pwrite"), "{text}");
}

#[test]
fn a_change_is_found_in_the_right_direction_for_speeds_and_times() {
    for (factor, verdict, word) in
        [(1.2, Verdict::Better, "faster by 1."), (1.0 / 1.2, Verdict::Worse, "slower by 1.")]
    {
        let comparison = compare(&ways(1.0, 7), &ways(factor, 7));
        let verdicts: Vec<Verdict> = comparison.figures().map(|it| it.verdict).collect();
        let none = Verdict::NoDifference;
        assert_eq!(verdicts, [none, none, verdict, verdict]);
        let changed = &comparison.rows[1].figures;
        for change in changed {
            assert!((change.ratio.unwrap() / factor - 1.0).abs() < 1e-9, "{change:?}");
            assert!(change.verdict_text().starts_with(word), "{}", change.verdict_text());
        }
        let slower = |percent| comparison.worse_by(percent).count();
        let expected = if verdict == Verdict::Worse { 2 } else { 0 };
        assert_eq!((slower(10.0), slower(25.0)), (expected, 0));
        assert!(comparison.table(false).lines().all(|line| line.chars().count() <= 100));
    }
}

#[test]
fn of_few_rounds_it_is_said_how_far_they_are_apart_and_that_it_is_not_sure() {
    let comparison = compare(&ways(1.0, 2), &ways(0.5, 2));
    assert!(comparison.figures().all(|change| change.verdict == Verdict::TooFewRounds));
    let texts: Vec<String> = comparison.figures().map(Change::verdict_text).collect();
    assert!(texts[0].starts_with("not sure (0.98–1.02x)"), "{texts:?}");
    assert!(texts[2].starts_with("not sure, slower in each round (1.96–2.04x)"), "{texts:?}");
    let better = compare(&ways(0.5, 2), &ways(1.0, 2));
    let text = better.figures().nth(2).unwrap().verdict_text();
    assert!(text.starts_with("not sure, faster in each round (1.96–2.04x)"), "{text}");
    let text = comparison.table(true).split_whitespace().collect::<Vec<&str>>().join(" ");
    assert!(
        text.contains("4 not sure, of which 0 were better and 2 worse in each round"),
        "{text}"
    );
    assert!(text.contains("chance alone sets 1 figure of 3 apart"), "{text}");
    assert!(text.contains(" mmap ") && !text.contains(" pwrite "), "{text}");
    assert_eq!(comparison.worse_by(0.0).count(), 0);
}

#[test]
fn two_machines_are_told_apart_from_before_and_after() {
    let (first, mut second) = (ways(1.0, 5), ways(1.0, 5));
    let text = compare(&first, &second).table(false);
    assert!(text.contains("before: A.json") && !text.contains("machines"), "{text}");
    second[0].conditions.machine.cpu = Some("another processor".into());
    let comparison = compare(&first, &second);
    for text in [comparison.table(false), comparison.to_markdown(false)] {
        assert!(text.contains("first: A.json") && text.contains("second: B.json"), "{text}");
        assert!(text.contains("two machines: \"faster\" is said of the second"), "{text}");
        assert!(!text.contains("before") && !text.contains("after"), "{text}");
    }
}

#[test]
fn what_is_missing_on_one_side_is_told() {
    let mut failed = row("mmap", 5, 1.0);
    (failed.verified, failed.metrics) = (false, Vec::new());
    failed.failed = Some("SIGBUS".into());
    let before = run(vec![row("pwrite", 5, 1.0), row("mmap", 5, 1.0), row("old", 5, 1.0)]);
    let after = run(vec![row("new", 5, 1.0), failed, row("pwrite", 5, 1.0)]);
    let comparison = compare(&before, &after);
    assert_eq!(
        comparison.notes,
        [
            "only in A.json: write, writes, filesystem ext4, way old",
            "only in B.json: write, writes, filesystem ext4, way new",
            "FAILED in B.json: writes, filesystem ext4, way mmap: SIGBUS",
        ]
    );
    assert_eq!(comparison.figures().count(), 2);
    let mut other = run(vec![row("other", 5, 1.0)]);
    other[0].warnings = vec!["it rains".into()];
    let notes = compare(&before, &other).notes.join("\n");
    assert!(
        notes.contains("no row is in both") && notes.contains("B.json has warnings, 1"),
        "{notes}"
    );
}

#[test]
fn figures_of_one_value_or_with_zeros_are_not_judged() {
    let row = |zero: f64| {
        Case { verified: true, ..Case::new("writes") }
            .key("way", "pwrite")
            .metric("faults", "per record", Better::Lower, vec![zero, 1.0, 1.0, 1.0])
            .metric("syscalls", "per record", Better::Lower, vec![1.0])
    };
    let comparison = compare(&run(vec![row(0.0)]), &run(vec![row(1.0)]));
    let verdicts: Vec<Verdict> = comparison.figures().map(|it| it.verdict).collect();
    assert_eq!(verdicts, [Verdict::NoRatio]);
    assert!(comparison.notes[0].starts_with("1 figures with one value"), "{:?}", comparison.notes);
}

#[test]
fn conditions_that_differ_are_shown_and_load_only_if_it_matters() {
    let (before, mut after) = (ways(1.0, 5), ways(1.0, 5));
    let mut before = before;
    before[0].conditions.load_average = Some([0.1, 0.1, 0.1]);
    after[0].conditions.load_average = Some([0.3, 0.1, 0.1]);
    after[0].conditions.kernel = "Linux 9.9".into();
    let what = |comparison: &Comparison| -> Vec<&str> {
        comparison.conditions.iter().map(|difference| difference.what).collect()
    };
    assert_eq!(what(&compare(&before, &after)), ["kernel"]);
    after[0].conditions.load_average = Some([2.0, 0.1, 0.1]);
    let comparison = compare(&before, &after);
    assert_eq!(what(&comparison), ["kernel", "load average"]);
    assert!(comparison.table(true).contains("Linux 9.9"));
    let markdown = comparison.to_markdown(false);
    assert!(
        markdown.contains("| kernel | ") && markdown.contains("| pwrite | 2.00 |"),
        "{markdown}"
    );
    let json: serde_json::Value = serde_json::from_str(&comparison.to_json().unwrap()).unwrap();
    assert_eq!(json["rows"][0]["figures"][0]["verdict"], "no-difference");
}

#[test]
fn rows_are_matched_whatever_their_order_and_twins_by_theirs() {
    let before = run(vec![row("pwrite", 5, 1.0), row("pwrite", 5, 3.0), row("mmap", 5, 2.0)]);
    let after = run(vec![row("mmap", 5, 2.0), row("pwrite", 5, 1.0), row("pwrite", 5, 3.0)]);
    let comparison = compare(&before, &after);
    assert!(comparison.figures().all(|change| change.ratio == Some(1.0)));
    assert_eq!(comparison.rows.len(), 3);
}
