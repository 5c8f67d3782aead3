//! What a contest came to, in the form that all suites share.

use super::content::BLOCK_BYTES;
use super::figures::{Figures, PERCENTILES};
use super::{Config, Entrant, ImageState};
use crate::place::Place;
use crate::report::{Better, Row, Series, place_name};

/// A row for each entrant.
pub(super) fn of(config: &Config, bytes: u64, place: &Place<'_>, entrants: &[Entrant]) -> Vec<Row> {
    let table = format!(
        "Random writes of {} KiB for {} s, {} at a time, direct, into an image of {} MiB",
        BLOCK_BYTES >> 10,
        config.duration.as_secs_f64(),
        config.depth,
        bytes >> 20
    );
    let filesystem = place_name(place.filesystem, place.is_scratch);
    let row = |entrant: &Entrant| {
        let case = entrant.case;
        let row = Row::new(&table)
            .key("filesystem", &filesystem)
            .key("image", case.state)
            .key("engine", case.engine)
            .key("tool", case.tool.as_str());
        let baseline = entrants.iter().find(|other| {
            other.case.state == ImageState::Metadata
                && (other.case.engine, other.case.tool) == (case.engine, case.tool)
        });
        finished(row, entrant, config, baseline)
    };
    entrants.iter().map(row).collect()
}

fn finished(mut row: Row, entrant: &Entrant, config: &Config, baseline: Option<&Entrant>) -> Row {
    row.skipped.clone_from(&entrant.skipped);
    row.failed.clone_from(&entrant.failed);
    if !entrant.is_good() {
        return row;
    }
    row.verified = entrant.case.tool.is_verified();
    let figures = &entrant.figures;
    let baseline = baseline.filter(|entrant| entrant.is_good());
    let baseline = baseline.map_or(&[][..], |entrant| &entrant.figures);
    let mut row = with_metrics(row, figures, baseline);
    if let Some(median) = median(figures) {
        row.series = series(median, config.duration.as_secs_f64());
    }
    row
}

fn with_metrics(row: Row, figures: &[Figures], baseline: &[Figures]) -> Row {
    let each = |figure: &dyn Fn(&Figures) -> f64| figures.iter().map(figure).collect::<Vec<f64>>();
    let ratios = figures.iter().zip(baseline).map(|(one, to)| one.rate / to.rate);
    let ratios: Vec<f64> = ratios.filter(|ratio| ratio.is_finite()).collect();
    // Only if it is known for each round.
    let extents: Option<Vec<f64>> =
        figures.iter().map(|one| one.extents.map(|extents| extents as f64)).collect();
    row.metric("rate", "IOPS", Better::Higher, each(&|one| one.rate))
        .metric("rate to metadata", "x", Better::Higher, ratios)
        .metric("first tenth", "IOPS", Better::Higher, each(&|one| one.ends().0))
        .metric("last tenth", "IOPS", Better::Higher, each(&|one| one.ends().1))
        .metric("p50", "us", Better::Lower, each(&|one| one.latency_at(50.0)))
        .metric("p99", "us", Better::Lower, each(&|one| one.latency_at(99.0)))
        .metric("p99.9", "us", Better::Lower, each(&|one| one.latency_at(99.9)))
        .metric("extents", "", Better::Neither, extents.unwrap_or_default())
        .metric("making", "ms", Better::Lower, each(&|one| one.making_ms))
}

/// The round in the middle, by its rate.
fn median(figures: &[Figures]) -> Option<&Figures> {
    let mut sorted: Vec<&Figures> = figures.iter().collect();
    sorted.sort_by(|one, other| one.rate.total_cmp(&other.rate));
    sorted.get(sorted.len().saturating_sub(1) / 2).copied()
}

/// Curves of one round, as far as it is known: each rate stands at the end of its step.
fn series(figures: &Figures, seconds: f64) -> Vec<Series> {
    let step = seconds / figures.rates.len() as f64;
    let rates = figures.rates.iter().zip(1_u32..).filter(|(rate, _)| rate.is_finite());
    let latencies = PERCENTILES.iter().zip(figures.latency_us);
    let mut series = vec![
        Series {
            name: "IOPS over time".into(),
            x: "s".into(),
            y: "IOPS".into(),
            points: rates.map(|(rate, number)| [f64::from(number) * step, *rate]).collect(),
        },
        Series {
            name: "latency percentiles".into(),
            x: "percentile".into(),
            y: "us".into(),
            points: latencies.map(|(percentile, micros)| [*percentile, micros]).collect(),
        },
    ];
    series.retain(|series| !series.points.is_empty());
    series
}
