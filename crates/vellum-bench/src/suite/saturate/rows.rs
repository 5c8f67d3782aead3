//! The results of the rounds, in the common form.

use super::book::{SLICES, Tally};
use super::load::Racer;
use super::round::Sample;
use super::{Arena, Config, Entrant};
use crate::bytes::size;
use crate::histogram::Histogram;
use crate::report::{Better, Case, Series};
use crate::stats::ratios;
use crate::ways::WayName;

/// The figures of the series of percentiles: on a logarithmic scale each step is as wide.
const PERCENTILES: [f64; 9] = [0.0, 50.0, 75.0, 90.0, 99.0, 99.9, 99.99, 99.999, 100.0];

/// A case for each way; without `kept_bytes` there was no room.
pub(super) fn of(
    config: &Config,
    arena: &Arena<'_>,
    kept_bytes: Option<u64>,
    entrants: &[Entrant<Racer, Sample>],
) -> Vec<Case> {
    let table = kept_bytes.map_or_else(
        || String::from("append for long"),
        |kept_bytes| {
            format!(
                "{} processes append records of {} for {} s, {} are kept",
                config.processes,
                size(config.bytes as u64),
                config.duration.as_secs_f64(),
                size(kept_bytes >> 20 << 20)
            )
        },
    );
    let write = entrants.iter().find(|entrant| entrant.way.name == WayName::Write);
    let write = write.map_or_else(Vec::new, |write| speeds(write, config));
    let case = |entrant: &Entrant<Racer, Sample>| {
        let case = arena.case(&table).key("way", entrant.way.name);
        let mut case = entrant.case(with_metrics(case, entrant, config, &write));
        let last = entrant.samples().last();
        case.series = last.map_or_else(Vec::new, |sample| series(sample, config));
        case
    };
    entrants.iter().map(case).collect()
}

fn seconds(sample: &Sample) -> f64 {
    let nanos = sample.tallies.iter().map(|tally| tally.nanos).max().unwrap_or(0);
    nanos.max(1) as f64 / 1e9
}

fn records(sample: &Sample) -> f64 {
    sample.tallies.iter().map(|tally| tally.acknowledged).sum::<u64>() as f64
}

/// GB/s, round by round.
fn speeds(entrant: &Entrant<Racer, Sample>, config: &Config) -> Vec<f64> {
    entrant.figures(|sample| records(sample) * config.bytes as f64 / 1e9 / seconds(sample))
}

fn with_metrics(
    case: Case,
    entrant: &Entrant<Racer, Sample>,
    config: &Config,
    write: &[f64],
) -> Case {
    let (higher, lower, neither) = (Better::Higher, Better::Lower, Better::Neither);
    let (speeds, mebi) = (speeds(entrant, config), f64::from(1 << 20));
    let most = |figure: fn(&Tally) -> u64, unit: f64| {
        let most = |sample: &Sample| sample.tallies.iter().map(figure).max().unwrap_or(0);
        entrant.figures(|sample| most(sample) as f64 / unit)
    };
    let quantile = |share: f64| {
        entrant.figures(|sample| whole(sample).quantile(share).unwrap_or(0) as f64 / 1000.0)
    };
    let share = |nanos: fn(&Tally) -> u64| entrant.figures(|sample| percent(sample, nanos));
    let dirty = |sample: &Sample| sample.dirty_bytes.iter().max().copied().unwrap_or(0);
    case.metric("appended", "GB/s", higher, speeds.clone())
        .metric("to write", "x", higher, ratios(&speeds, write))
        .metric("records", "1/s", higher, entrant.figures(|one| records(one) / seconds(one)))
        .metric("p50", "us", lower, quantile(0.5))
        .metric("p99", "us", lower, quantile(0.99))
        .metric("p99.9", "us", lower, quantile(0.999))
        .metric("max", "us", lower, most(|tally| tally.nanos_max, 1000.0))
        .metric("longest stop", "ms", lower, most(|tally| tally.stop_nanos_max, 1e6))
        .metric("stopped", "%", lower, share(|tally| tally.stop_nanos))
        .metric("longest removal", "ms", neither, most(|tally| tally.removal_nanos_max, 1e6))
        .metric("removing", "%", neither, share(|tally| tally.removal_nanos))
        .metric("dirty, at most", "MiB", neither, entrant.figures(|one| dirty(one) as f64 / mebi))
        .metric("memory, at most", "MiB", lower, most(|tally| tally.memory_bytes, mebi))
        .metric("disk", "MiB", neither, entrant.figures(|one| one.disk_bytes as f64 / mebi))
        .metric("sync after", "s", lower, entrant.figures(|one| one.sync.as_secs_f64()))
}

/// What `nanos` says of all writers, as a share of the time of all.
fn percent(sample: &Sample, nanos: fn(&Tally) -> u64) -> f64 {
    let nanos: u64 = sample.tallies.iter().map(nanos).sum();
    nanos as f64 / 1e9 / (seconds(sample) * sample.tallies.len() as f64) * 100.0
}

/// The latencies of the whole round.
fn whole(sample: &Sample) -> Histogram {
    let mut whole = Histogram::default();
    sample.slices.iter().for_each(|slice| whole.add(slice));
    whole
}

fn series(sample: &Sample, config: &Config) -> Vec<Series> {
    let slice_seconds = config.duration.as_secs_f64() / SLICES as f64;
    let over_time = |name: &str, unit: &str, figure: &dyn Fn(usize) -> Option<f64>| {
        // Each point is where its slice ends.
        let point = |slice: usize| Some([(slice + 1) as f64 * slice_seconds, figure(slice)?]);
        Series::new(name, "s", unit, (0..SLICES).filter_map(point).collect())
    };
    let p99 = |slice: usize| sample.slices[slice].quantile(0.99).map(|nanos| nanos as f64 / 1000.0);
    let speed = |slice: usize| {
        let bytes = sample.slices[slice].count() as f64 * config.bytes as f64;
        Some(bytes / 1e9 / slice_seconds)
    };
    let dirty = |slice: usize| Some(sample.dirty_bytes[slice] as f64 / f64::from(1 << 20));
    let whole = whole(sample);
    let percentile = |percent: f64| {
        whole.quantile(percent / 100.0).map(|nanos| [percent, nanos as f64 / 1000.0])
    };
    let percentiles = PERCENTILES.into_iter().filter_map(percentile).collect();
    vec![
        over_time("throughput over time", "GB/s", &speed),
        over_time("p99 over time", "us", &p99),
        over_time("dirty memory over time", "MiB", &dirty),
        Series::new("latency percentiles", "%", "us", percentiles),
    ]
}
