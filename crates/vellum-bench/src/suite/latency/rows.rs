//! The cases of the report.

use super::round::Sample;
use super::{Contestant, Load};
use crate::bytes::size;
use crate::histogram::Histogram;
use crate::report::{Better, Case, Series};
use crate::suite::{Arena, Entrant};

/// The columns, with the share of the records that are not slower.
const QUANTILES: [(&str, f64); 6] =
    [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("p99.99", 0.9999), ("max", 1.0)];
/// The points of the series of percentiles.
const PERCENTILES: [f64; 9] = [0.0, 50.0, 75.0, 90.0, 99.0, 99.9, 99.99, 99.999, 100.0];

/// A case for each way.
pub(super) fn of(
    load: &Load,
    arena: &Arena<'_>,
    entrants: &[Entrant<Contestant, Sample>],
) -> Vec<Case> {
    let what = if load.reader.is_some() { "append" } else { "commit" };
    let table = format!("{} processes {what} records of {}", load.writers, size(load.bytes as u64));
    let case = |entrant: &Entrant<Contestant, Sample>| {
        let mut case = arena.case(&table).key("rate", format!("{}/s", load.rate));
        if let Some(reader) = load.reader {
            case = case.key("reader", reader);
        }
        let case = case.key("way", &entrant.way);
        let mut case = entrant.case(with_metrics(case, load, entrant));
        case.series = entrant.samples().last().map_or_else(Vec::new, |last| series(load, last));
        case
    };
    entrants.iter().map(case).collect()
}

fn with_metrics(mut case: Case, load: &Load, entrant: &Entrant<Contestant, Sample>) -> Case {
    let returned: Vec<&Histogram> = entrant.samples().iter().map(|one| &one.returned).collect();
    let seen = entrant.samples().iter().filter_map(|one| one.seen.as_ref()).collect();
    let above = entrant.samples().iter().filter_map(|one| one.above_floor.as_ref()).collect();
    let times = match load.reader {
        Some(_) => vec![("seen", seen), ("returned", returned), ("above floor", above)],
        None => vec![("durable", returned), ("above floor", above)],
    };
    for (name, histograms) in times {
        for (quantile, share) in QUANTILES {
            let nanos = histograms.iter().filter_map(|histogram| histogram.quantile(share));
            let micros = nanos.map(|nanos| nanos as f64 / 1e3).collect();
            case = case.metric(&format!("{name} {quantile}"), "us", Better::Lower, micros);
        }
    }
    case.metric("records", "1/s", Better::Neither, entrant.figures(Sample::rate))
}

fn series(load: &Load, sample: &Sample) -> Vec<Series> {
    let percentiles = |histogram: &Histogram| {
        let point =
            |percent: f64| Some([percent, histogram.quantile(percent / 100.0)? as f64 / 1e3]);
        PERCENTILES.into_iter().filter_map(point).collect()
    };
    let series = |name: &str, histogram: &Histogram| {
        let name = format!("percentiles of {name} at {}/s", load.rate);
        Series::new(&name, "%", "us", percentiles(histogram))
    };
    let name = if load.reader.is_some() { "returned" } else { "durable" };
    let seen = sample.seen.iter().map(|seen| series("seen", seen));
    let above = sample.above_floor.iter().map(|above| series("above floor", above));
    seen.chain([series(name, &sample.returned)]).chain(above).collect()
}
