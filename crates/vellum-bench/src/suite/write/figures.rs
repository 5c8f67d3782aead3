//! From what the rounds took to the rows of the report.

use super::case::Sample;
use super::config::Table;
use super::rounds::{Ended, Entrant};
use crate::report::{Better, Row, size};

/// The rows of a table in one place; `bytes` is how long each file was.
pub(super) fn rows(entrants: &[Entrant<'_>], filesystem: &str, bytes: u64) -> Vec<Row> {
    let row = |entrant: &Entrant<'_>| {
        let mut row = Row::new(entrant.case.table.as_str()).key("filesystem", filesystem);
        for (name, value) in &entrant.case.keys {
            row = row.key(name, value);
        }
        row = row.key("bytes", size(bytes));
        match &entrant.ended {
            Some(Ended::Unsupported(reason)) => row.skipped = Some(reason.clone()),
            Some(Ended::Failed(reason)) => row.failed = Some(reason.clone()),
            None => return figures(row, entrant, baseline(entrants, entrant), bytes),
        }
        row
    };
    entrants.iter().map(row).collect()
}

/// What the others are compared with that write with as many threads; nothing if it failed.
fn baseline<'a>(entrants: &'a [Entrant<'_>], of: &Entrant<'_>) -> &'a [Sample] {
    let is_baseline = |entrant: &&Entrant<'_>| {
        let case = entrant.case;
        case.is_baseline && case.threads == of.case.threads && entrant.ended.is_none()
    };
    entrants.iter().find(is_baseline).map_or(&[], |entrant| &entrant.samples)
}

fn figures(mut row: Row, entrant: &Entrant<'_>, baseline: &[Sample], bytes: u64) -> Row {
    let samples = &entrant.samples;
    let all = |figure: &dyn Fn(&Sample) -> f64| samples.iter().map(figure).collect::<Vec<f64>>();
    let gib = bytes as f64 / f64::from(1 << 30);
    row.verified = true;
    if entrant.case.table == Table::Create {
        let percent = |sample: &Sample| 100.0 * sample.allocated as f64 / bytes as f64;
        return row
            .metric("make", "ms", Better::Lower, all(&|sample| ms(sample.write)))
            .metric("make per GiB", "ms", Better::Lower, all(&|sample| ms(sample.write) / gib))
            .metric("make and sync", "ms", Better::Lower, all(&|sample| ms(synced(sample))))
            .metric("allocated", "%", Better::Neither, all(&percent));
    }
    let speed = |time: fn(&Sample) -> u64| all(&|sample| bytes as f64 / time(sample) as f64);
    let ratio = |time: fn(&Sample) -> u64| {
        let pairs = samples.iter().zip(baseline);
        pairs.map(|(sample, other)| time(other) as f64 / time(sample) as f64).collect()
    };
    let higher = Better::Higher;
    row = row
        .metric("write", "GB/s", higher, speed(|sample| sample.write))
        .metric("write and sync", "GB/s", higher, speed(synced))
        .metric("in all", "GB/s", higher, speed(in_all));
    if entrant.case.table == Table::Parallel {
        row = row
            .metric("write / files", "x", higher, ratio(|sample| sample.write))
            .metric("write and sync / files", "x", higher, ratio(synced))
            .metric("in all / files", "x", higher, ratio(in_all));
    }
    row.metric("preparation", "ms", Better::Lower, all(&|sample| ms(sample.preparation))).metric(
        "cpu per GiB",
        "s",
        Better::Lower,
        all(&|sample| sample.cpu as f64 / 1e9 / gib),
    )
}

fn ms(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

fn synced(sample: &Sample) -> u64 {
    sample.write + sample.sync
}

fn in_all(sample: &Sample) -> u64 {
    sample.preparation + synced(sample)
}
