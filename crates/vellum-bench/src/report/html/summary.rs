//! The findings, by rule: the best row of each table, how far ahead it is, and whether that is more
//! than noise.

use maud::{Markup, html};

use super::super::group::{Figure, Group};
use super::super::{Better, Case, Metric, Report, wrapped};
use super::charts::{better, headlines, spread};
use super::loads;
use super::names::row_name;
use super::number::number;
use crate::faster::{beats, leads};
use crate::stats::Spread;

/// So many findings are seen at once: they fit a screen.
const SHOWN: usize = 10;

/// So many rows that are as good are named.
const MOST_NAMED: usize = 2;

/// A file that has fewer of its blocks was not made as the others were.
const ALLOCATED_PERCENT_MIN: f64 = 50.0;

/// The finding of one table.
#[derive(Clone, Debug, PartialEq)]
struct Finding {
    suite: String,
    what: String,
    place: String,
    best: String,
    as_good: Option<String>,
    is_own: bool,
    figure: String,
    against: String,
    verdict: Verdict,
}

/// How sure it is that the best row is better than the one that is named beside it. The surest come
/// first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    /// It beats that row.
    Clear,
    /// It was better in every round, of rounds so few that it may be chance.
    Likely,
    /// No row is different, as far as the rounds tell.
    Noise,
    /// One round has no noise to compare with.
    OneRound,
    /// Nothing else was measured.
    Alone,
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Verdict::Clear => "clear",
            Verdict::Likely => "likely",
            Verdict::Noise => "within noise",
            Verdict::OneRound => "one round only",
            Verdict::Alone => "nothing to compare",
        }
    }
}

/// The findings of all tables.
fn all(documents: &[Report]) -> Vec<Finding> {
    documents
        .iter()
        .flat_map(|document| {
            let suite = document.suite.as_str();
            let groups = Group::all(&document.cases).into_iter();
            let parts = groups.flat_map(|group| comparable(suite, group));
            parts
                .filter_map(|(load, group)| finding(suite, &load, &group))
                .collect::<Vec<Finding>>()
        })
        .collect()
}

/// Those that are seen first, for a terminal; empty if there are none.
pub(super) fn text(documents: &[Report]) -> String {
    let findings = all(documents);
    let shown = first_seen(&findings);
    let line = |finding: &&Finding| {
        let Finding { what, place, best, figure, against, verdict, .. } = finding;
        let as_good = finding.as_good.iter().map(|names| format!(" (as good: {names})"));
        let against = if against.is_empty() { String::new() } else { format!("; {against}") };
        let as_good: String = as_good.collect();
        let verdict = verdict.word();
        wrapped(&format!("{what}, {place}: {best}{as_good}, {figure}{against} ({verdict})"))
    };
    let mut lines: String = shown.iter().map(line).collect();
    if let Some(more) = findings.len().checked_sub(shown.len()).filter(|more| *more > 0) {
        lines.push_str(&format!("{more} more findings are in the report (--html)\n"));
    }
    lines
}

/// The findings of all tables; nothing if there are none.
pub(super) fn summary(documents: &[Report]) -> Option<Markup> {
    let findings = all(documents);
    if findings.is_empty() {
        return None;
    }
    let shown = first_seen(&findings);
    let rest: Vec<&Finding> = findings.iter().filter(|one| !shown.contains(one)).collect();
    Some(html! {
        (table(&shown))
        @if !rest.is_empty() {
            details {
                summary { (rest.len()) " more findings" }
                (table(&rest))
            }
        }
        p .hint {
            "The best row of each table by its first figure, under the least and the greatest load; "
            "calls that make a file without allocating it are not compared. "
            em { "As good" } ": which of these is best may be chance. "
            em { "How sure" } " is about the row that is named in \"Against the others\". "
            em { "Clear" } ": round by round the best was better so often that a coin would do as "
            "well in one of twenty runs at most, and by 5 % in the median; "
            em { "likely" } ": by as much in every round, of fewer than five."
        }
    })
}

/// All if they fit a screen; otherwise one of each suite, the first of those that are surest.
fn first_seen(findings: &[Finding]) -> Vec<&Finding> {
    if findings.len() <= SHOWN {
        return findings.iter().collect();
    }
    let mut shown: Vec<&Finding> = Vec::new();
    for one in findings {
        match shown.iter_mut().find(|known| known.suite == one.suite) {
            Some(known) if one.verdict < known.verdict => *known = one,
            Some(_) => {}
            None => shown.push(one),
        }
    }
    shown.truncate(SHOWN);
    shown
}

fn table(findings: &[&Finding]) -> Markup {
    html! {
        div .scroll tabindex="0" role="region" aria-label="What these figures say" {
            table .findings {
                thead {
                    tr {
                        th { "Measured" } th { "Where" } th { "Best" } th .number { "Median" }
                        th { "Against the others" } th { "How sure" }
                    }
                }
                tbody { @for finding in findings { (row(finding)) } }
            }
        }
    }
}

fn row(finding: &Finding) -> Markup {
    let class = if finding.verdict == Verdict::Clear { "badge sure" } else { "badge" };
    html! {
        tr {
            td data-label="Measured" { (finding.what) }
            td data-label="Where" { (finding.place) }
            td .own[finding.is_own] data-label="Best" {
                strong { (finding.best) }
                @if let Some(others) = &finding.as_good { ", as good: " (others) }
            }
            td .number data-label="Median" { (finding.figure) }
            td data-label="Against the others" { (finding.against) }
            td data-label="How sure" { span class=(class) { (finding.verdict.word()) } }
        }
    }
}

/// The rows that do the same work under the same load.
fn comparable<'a>(suite: &str, mut group: Group<'a>) -> Vec<(String, Group<'a>)> {
    group.rows.retain(|row| !is_hollow(row));
    loads::rivals(suite, &group)
}

/// Did it make a file without most of its blocks? That is next to no work, and a writer there
/// later pays for it.
fn is_hollow(row: &Case) -> bool {
    let allocated = row.metrics.iter().find(|metric| metric.name == "allocated");
    let spread = allocated.filter(|metric| metric.unit == "%").and_then(Metric::spread);
    spread.is_some_and(|spread| spread.median < ALLOCATED_PERCENT_MIN)
}

/// A row with its figures.
struct Rival<'a> {
    row: &'a Case,
    spread: Spread,
}

fn finding(suite: &str, load: &str, group: &Group<'_>) -> Option<Finding> {
    let figure = *headlines(group).first()?;
    let better = better(group, &figure);
    if better == Better::Neither {
        return None;
    }
    let rivals = ranked(group, &figure, better);
    let (best, others) = rivals.split_first()?;
    let keys = group.key_columns();
    let name = |rival: &Rival<'_>| row_name(rival.row, &keys);
    let scores = |rival: &Rival<'_>| scores(figure.samples(rival.row), better);
    let ours = scores(best);
    let (beaten, equals): (Vec<&Rival<'_>>, Vec<&Rival<'_>>) = others.iter().partition(|other| {
        let theirs = scores(other);
        beats(&ours, &theirs) || leads(&ours, &theirs)
    });
    let verdict = match (others.len(), beaten.first()) {
        (0, _) => Verdict::Alone,
        _ if ours.len() == 1 => Verdict::OneRound,
        (_, None) => Verdict::Noise,
        (_, Some(next)) if beats(&ours, &scores(next)) => Verdict::Clear,
        _ => Verdict::Likely,
    };
    let next = beaten.first().map(|next| {
        let ratio = ratio(better, best.spread.median, next.spread.median);
        format!("{} × better than {}", number(ratio), name(next))
    });
    let none = (!others.is_empty()).then(|| String::from("no difference seen"));
    let equals: Vec<String> = equals.into_iter().map(name).collect();
    let parts = [next.or(none), baseline(best.row)].into_iter().flatten();
    Some(Finding {
        suite: suite.to_string(),
        what: what(suite, &best.row.table, load),
        place: best.row.value("filesystem").unwrap_or("–").to_string(),
        best: name(best),
        as_good: alike(&equals),
        is_own: best.row.is_own(),
        figure: format!("{} {}", number(best.spread.median), figure.unit),
        against: parts.collect::<Vec<String>>().join("; "),
        verdict,
    })
}

fn what(suite: &str, table: &str, load: &str) -> String {
    let details = [table, load].into_iter().filter(|part| !part.is_empty());
    match details.collect::<Vec<&str>>().join(", ").as_str() {
        "" => suite.to_string(),
        details => format!("{suite}: {details}"),
    }
}

/// The rows that have this figure, the best first.
fn ranked<'a>(group: &Group<'a>, figure: &Figure<'_>, better: Better) -> Vec<Rival<'a>> {
    let rivals =
        group.rows.iter().filter_map(|row| Some(Rival { row, spread: spread(row, figure)? }));
    let mut rivals: Vec<Rival<'_>> = rivals.collect();
    rivals.sort_by(|one, other| {
        let (one, other) = (one.spread.median, other.spread.median);
        if better == Better::Lower { one.total_cmp(&other) } else { other.total_cmp(&one) }
    });
    rivals
}

/// One for each round, more is better.
fn scores(samples: &[f64], better: Better) -> Vec<f64> {
    let score = |sample: &f64| if better == Better::Lower { sample.recip() } else { *sample };
    samples.iter().map(score).collect()
}

/// How many times as good, above 1.
fn ratio(better: Better, best: f64, next: f64) -> f64 {
    if better == Better::Lower { next / best } else { best / next }
}

fn alike(names: &[String]) -> Option<String> {
    let named = names.iter().take(MOST_NAMED).cloned().collect::<Vec<String>>().join("; ");
    match names.len() {
        0 => None,
        count if count <= MOST_NAMED => Some(named),
        count => Some(format!("{named} and {} more", count - MOST_NAMED)),
    }
}

/// The row's own ratio, if it has one: that to the suite's baseline.
fn baseline(row: &Case) -> Option<String> {
    let ratio = row.metrics.iter().find(|metric| metric.unit == "x")?;
    Some(format!("{}: {} ×", ratio.name, number(ratio.spread()?.median)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(way: &str, samples: &[f64]) -> Case {
        let row = Case::new("t").key("filesystem", "xfs").key("way", way);
        row.metric("write", "GB/s", Better::Higher, samples.to_vec())
    }

    fn found(rows: &[Case]) -> Finding {
        finding("s", "", &Group::all(rows)[0]).unwrap()
    }

    #[test]
    fn the_best_is_clear_if_it_beats_the_row_that_is_named() {
        let slow = row("slow", &[1.0, 1.1, 1.1, 1.2, 2.1]);
        let fast = row("fast", &[2.0, 2.2, 2.2, 2.4, 4.2]);
        let found_clear = found(&[slow.clone(), fast.clone()]);
        assert_eq!((found_clear.best.as_str(), found_clear.verdict), ("fast", Verdict::Clear));
        assert_eq!(found_clear.against, "2.00 × better than slow");
        let noisy = found(&[slow, fast, row("wild", &[0.1, 2.1, 2.1, 2.5, 4.0])]);
        assert_eq!((noisy.best.as_str(), noisy.verdict), ("fast", Verdict::Clear));
        assert_eq!(noisy.as_good.as_deref(), Some("wild"));
        assert_eq!(noisy.against, "2.00 × better than slow");
    }

    #[test]
    fn less_is_better_where_it_is() {
        let row = |way: &str, ms: f64| {
            let row = Case::new("t").key("filesystem", "xfs").key("way", way);
            row.metric("time", "ms", Better::Lower, vec![ms, ms])
        };
        let found = found(&[row("a", 9.0), row("b", 3.0)]);
        assert_eq!((found.best.as_str(), found.against.as_str()), ("b", "3.00 × better than a"));
    }

    #[test]
    fn only_the_same_load_is_compared() {
        let row = |threads: u32| row("a", &[1.0]).key("threads", threads);
        let rows = [row(1), row(1), row(4), row(16)];
        let parts = comparable("commit", Group::all(&rows).remove(0));
        let parts: Vec<_> =
            parts.iter().map(|(load, part)| (load.as_str(), part.rows.len())).collect();
        assert_eq!(parts, [("1 thread", 2), ("16 threads", 1)]);
    }

    #[test]
    fn a_length_without_blocks_is_not_the_best_way_to_make_a_file() {
        let row = |way: &str, ms: f64, percent: f64| {
            let row = Case::new("create").key("filesystem", "xfs").key("way", way);
            row.metric("make", "ms", Better::Lower, vec![ms, ms]).metric(
                "allocated",
                "%",
                Better::Neither,
                vec![percent, percent],
            )
        };
        let rows = [row("ftruncate", 0.01, 0.0), row("fallocate", 1.0, 100.4)];
        let parts = comparable("write", Group::all(&rows).remove(0));
        let found = finding("write", "", &parts[0].1).unwrap();
        assert_eq!((found.best.as_str(), found.verdict), ("fallocate", Verdict::Alone));
        assert!(comparable("write", Group::all(&rows[..1]).remove(0)).is_empty());
    }

    #[test]
    fn what_can_not_be_known_is_not_said() {
        assert_eq!(found(&[row("a", &[1.0]), row("b", &[2.0])]).verdict, Verdict::OneRound);
        assert_eq!(found(&[row("a", &[1.0, 1.0]), row("b", &[2.0, 2.0])]).verdict, Verdict::Likely);
        assert_eq!(found(&[row("a", &[1.0, 2.0])]).verdict, Verdict::Alone);
        let nothing = [row("a", &[]), row("b", &[f64::NAN])];
        assert_eq!(finding("s", "", &Group::all(&nothing)[0]), None);
    }
}
