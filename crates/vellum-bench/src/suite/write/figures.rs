//! From what the rounds took to the cases of the report.

use super::config::Table;
use super::entry::{Entry, Sample};
use super::{Arena, Entrant};
use crate::bytes::size;
use crate::report::{Better, Case};
use crate::stats::ratios;

/// The case of an entry; `bytes` is how long each file was.
pub(super) fn case(
    entrants: &[Entrant<&Entry, Sample>],
    entrant: &Entrant<&Entry, Sample>,
    bytes: u64,
    arena: &Arena<'_>,
) -> Case {
    let entry = entrant.way;
    let case = arena.case(entry.table.as_str());
    let case = entry.keys.iter().fold(case, |case, (name, value)| case.key(name, value));
    let case = case.key("bytes", size(bytes));
    entrant.case(match entry.table {
        Table::Create => with_costs(case, entrant, bytes),
        _ => with_speeds(case, entrant, baseline(entrants, entry), bytes),
    })
}

/// The baseline of the cases with as many threads.
fn baseline<'a>(
    entrants: &'a [Entrant<&Entry, Sample>],
    of: &Entry,
) -> Option<&'a Entrant<&'a Entry, Sample>> {
    let is_baseline = |entry: &Entry| entry.is_baseline && entry.threads == of.threads;
    entrants.iter().find(|entrant| of.table == Table::Parallel && is_baseline(entrant.way))
}

/// A time of a sample.
type Time = fn(&Sample) -> f64;

fn with_costs(case: Case, entrant: &Entrant<&Entry, Sample>, bytes: u64) -> Case {
    let (lower, gib) = (Better::Lower, gib(bytes));
    let percent = |sample: &Sample| 100.0 * sample.allocated / bytes as f64;
    case.metric("make", "ms", lower, entrant.figures(|sample| ms(sample.write)))
        .metric("make per GiB", "ms", lower, entrant.figures(|sample| ms(sample.write) / gib))
        .metric("make and sync", "ms", lower, entrant.figures(|sample| ms(synced(sample))))
        .metric("allocated", "%", Better::Neither, entrant.figures(percent))
}

fn with_speeds(
    mut case: Case,
    entrant: &Entrant<&Entry, Sample>,
    baseline: Option<&Entrant<&Entry, Sample>>,
    bytes: u64,
) -> Case {
    let times: [(&str, Time); 3] =
        [("write", |sample| sample.write), ("write and sync", synced), ("in all", in_all)];
    for (name, time) in times {
        let speeds = entrant.figures(|sample| bytes as f64 / time(sample));
        case = case.metric(name, "GB/s", Better::Higher, speeds);
    }
    for (name, time) in times {
        let base = baseline.map_or_else(Vec::new, |baseline| baseline.figures(time));
        let ratios = ratios(&base, &entrant.figures(time));
        case = case.metric(&format!("{name} / files"), "x", Better::Higher, ratios);
    }
    let preparation = entrant.figures(|sample| ms(sample.preparation));
    let cpu = entrant.figures(|sample| sample.cpu / 1e9 / gib(bytes));
    case.metric("preparation", "ms", Better::Lower, preparation).metric(
        "cpu per GiB",
        "s",
        Better::Lower,
        cpu,
    )
}

fn gib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 30)
}

fn ms(nanos: f64) -> f64 {
    nanos / 1e6
}

fn synced(sample: &Sample) -> f64 {
    sample.write + sample.sync
}

fn in_all(sample: &Sample) -> f64 {
    sample.preparation + synced(sample)
}
