//! What the rounds came to, in the common form.

use super::Config;
use super::book::{Histogram, SLICES, Tally};
use super::contest::Entrant;
use super::round::Sample;
use crate::place::Place;
use crate::report::{Better, Row, Series, place_name, size};
use crate::ways::WayName;

/// The figures of the series of percentiles: on a logarithmic scale each step is as wide.
const PERCENTILES: [f64; 9] = [0.0, 50.0, 75.0, 90.0, 99.0, 99.9, 99.99, 99.999, 100.0];

/// A row for each way.
pub(super) fn rows(
    config: &Config,
    place: &Place<'_>,
    kept_bytes: u64,
    entrants: &[Entrant],
) -> Vec<Row> {
    let good = |entrant: &&Entrant| entrant.failed.is_none() && entrant.skipped.is_none();
    let write = entrants.iter().filter(good).find(|entrant| entrant.name == WayName::Write);
    let write: Vec<f64> = write.map_or_else(Vec::new, |write| speeds(&write.samples, config.bytes));
    let table = format!(
        "{} processes append records of {} for {} s, {} are kept",
        config.processes,
        size(config.bytes as u64),
        config.duration.as_secs_f64(),
        size(kept_bytes >> 20 << 20)
    );
    let row = |entrant: &Entrant| {
        let mut row = Row::new(table.clone())
            .key("filesystem", place_name(place.filesystem, place.is_scratch))
            .key("way", entrant.name);
        row.skipped.clone_from(&entrant.skipped);
        row.failed.clone_from(&entrant.failed);
        row.verified = good(&entrant);
        if !row.verified {
            return row;
        }
        let speeds = speeds(&entrant.samples, config.bytes);
        let ratios = speeds.iter().zip(&write).map(|(speed, write)| speed / write).collect();
        let row = metrics(row, &entrant.samples, speeds, ratios);
        match entrant.samples.last() {
            Some(sample) => with_series(row, sample, config),
            None => row,
        }
    };
    entrants.iter().map(row).collect()
}

/// A row for each way where there is too little room.
pub(super) fn without_room(config: &Config, place: &Place<'_>) -> Vec<Row> {
    let row = |way: &WayName| Row {
        skipped: Some("there is too little room for a log that goes on".into()),
        ..Row::new("append for long")
            .key("filesystem", place_name(place.filesystem, place.is_scratch))
            .key("way", way)
    };
    config.ways.iter().map(row).collect()
}

/// Says if the kernel never had reason to slow a writer down.
pub(super) fn limit_warning(
    place: &Place<'_>,
    entrants: &[Entrant],
    slowing_bytes: Option<u64>,
) -> Option<String> {
    let slowing = slowing_bytes?;
    let samples = entrants.iter().flat_map(|entrant| &entrant.samples);
    let peak = samples.flat_map(|sample| &sample.dirty_bytes).max().copied()?;
    (peak < slowing).then(|| {
        format!(
            "{}: the kernel slows writers down from about {} MiB of dirty memory on, and the most \
             was {} MiB; a longer run, more that is kept or a lower vm.dirty_bytes would reach it",
            place.filesystem,
            slowing >> 20,
            peak >> 20
        )
    })
}

fn seconds(sample: &Sample) -> f64 {
    let nanos = sample.tallies.iter().map(|tally| tally.nanos).max().unwrap_or(0);
    nanos.max(1) as f64 / 1e9
}

fn records(sample: &Sample) -> f64 {
    sample.tallies.iter().map(|tally| tally.acknowledged).sum::<u64>() as f64
}

/// GB/s, round by round.
fn speeds(samples: &[Sample], bytes: usize) -> Vec<f64> {
    let speed = |sample: &Sample| records(sample) * bytes as f64 / 1e9 / seconds(sample);
    samples.iter().map(speed).collect()
}

fn metrics(row: Row, samples: &[Sample], speeds: Vec<f64>, ratios: Vec<f64>) -> Row {
    let all = |figure: &dyn Fn(&Sample) -> f64| samples.iter().map(figure).collect::<Vec<f64>>();
    let most = |figure: fn(&Tally) -> u64, unit: f64| {
        all(&|sample| sample.tallies.iter().map(figure).max().unwrap_or(0) as f64 / unit)
    };
    let quantile =
        |share: f64| all(&|sample| whole(sample).quantile(share).unwrap_or(0) as f64 / 1000.0);
    let stopped = all(&|sample| {
        let nanos: u64 = sample.tallies.iter().map(|tally| tally.stop_nanos).sum();
        nanos as f64 / 1e9 / (seconds(sample) * sample.tallies.len() as f64) * 100.0
    });
    let dirty = all(&|sample| {
        sample.dirty_bytes.iter().max().copied().unwrap_or(0) as f64 / f64::from(1 << 20)
    });
    let disk = all(&|sample| sample.disk_bytes as f64 / f64::from(1 << 20));
    let mebi = f64::from(1 << 20);
    row.metric("appended", "GB/s", Better::Higher, speeds)
        .metric("to write", "x", Better::Higher, ratios)
        .metric("records", "1/s", Better::Higher, all(&|sample| records(sample) / seconds(sample)))
        .metric("p50", "us", Better::Lower, quantile(0.5))
        .metric("p99", "us", Better::Lower, quantile(0.99))
        .metric("p99.9", "us", Better::Lower, quantile(0.999))
        .metric("max", "us", Better::Lower, most(|tally| tally.nanos_max, 1000.0))
        .metric("longest stop", "ms", Better::Lower, most(|tally| tally.stop_nanos_max, 1e6))
        .metric("stopped", "%", Better::Lower, stopped)
        .metric("dirty, at most", "MiB", Better::Neither, dirty)
        .metric("memory, at most", "MiB", Better::Lower, most(|tally| tally.memory_bytes, mebi))
        .metric("disk", "MiB", Better::Neither, disk)
        .metric("sync after", "s", Better::Lower, all(&|sample| sample.sync.as_secs_f64()))
}

/// The latencies of the whole round.
fn whole(sample: &Sample) -> Histogram {
    let mut whole = Histogram::default();
    sample.slices.iter().for_each(|slice| whole.add(slice));
    whole
}

fn with_series(mut row: Row, sample: &Sample, config: &Config) -> Row {
    let slice_seconds = config.duration.as_secs_f64() / SLICES as f64;
    let over_time = |name: &str, unit: &str, figure: &dyn Fn(usize) -> Option<f64>| Series {
        name: name.into(),
        x: "s".into(),
        y: unit.into(),
        // Each point stands where its slice ends.
        points: (0..SLICES)
            .filter_map(|slice| figure(slice).map(|y| [(slice + 1) as f64 * slice_seconds, y]))
            .collect(),
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
    row.series = vec![
        over_time("throughput over time", "GB/s", &speed),
        over_time("p99 over time", "us", &p99),
        over_time("dirty memory over time", "MiB", &dirty),
        Series {
            name: "latency percentiles".into(),
            x: "%".into(),
            y: "us".into(),
            points: PERCENTILES.into_iter().filter_map(percentile).collect(),
        },
    ];
    row
}
