//! The result of a contest, in the form that all suites share.

use std::time::Duration;

use super::content::BLOCK_BYTES;
use super::figures::{Figures, PERCENTILES};
use super::round::Way;
use super::{Arena, Config, Entrant};
use crate::report::{Better, Case, Series};
use crate::stats::ratios;

/// A case for each entrant.
pub(super) fn of(
    config: &Config,
    bytes: u64,
    arena: &Arena<'_>,
    entrants: &[Entrant<Way, Figures>],
) -> Vec<Case> {
    let seconds = config.duration.as_secs_f64();
    let table = format!(
        "Random writes of {} KiB for {seconds} s, {} at a time, direct, into an image of {} MiB",
        BLOCK_BYTES >> 10,
        config.depth,
        bytes >> 20
    );
    let case = |entrant: &Entrant<Way, Figures>| {
        let Way { state, engine, tool } = entrant.way;
        let case =
            arena.case(&table).key("image", state).key("engine", engine).key("tool", tool.as_str());
        let baseline = Way { state: state.baseline(), engine, tool };
        let baseline = entrants.iter().find(|other| other.way == baseline);
        let mut case = entrant.case(with_metrics(case, entrant, baseline, config.duration));
        case.verified &= tool.is_verified();
        case.series = median(entrant.samples()).map_or_else(Vec::new, |one| series(one, seconds));
        case
    };
    entrants.iter().map(case).collect()
}

fn with_metrics(
    case: Case,
    entrant: &Entrant<Way, Figures>,
    baseline: Option<&Entrant<Way, Figures>>,
    duration: Duration,
) -> Case {
    let (higher, lower) = (Better::Higher, Better::Lower);
    let rates = entrant.figures(|one| one.rate);
    let base = baseline.map_or_else(Vec::new, |baseline| baseline.figures(|one| one.rate));
    let ratios = ratios(&rates, &base).into_iter().filter(|ratio| ratio.is_finite()).collect();
    let extents = known(entrant, |one| Some(one.extents? as f64));
    let first = |seconds| known(entrant, |one| one.first(seconds, duration));
    case.metric("rate", "IOPS", higher, rates)
        .metric("rate to metadata", "x", higher, ratios)
        .metric("first tenth", "IOPS", higher, entrant.figures(|one| one.ends().0))
        .metric("last tenth", "IOPS", higher, entrant.figures(|one| one.ends().1))
        .metric("first second", "IOPS", higher, first(1.0))
        .metric("first minute", "IOPS", higher, first(60.0))
        .metric("p50", "us", lower, entrant.figures(|one| one.latency_at(50.0)))
        .metric("p99", "us", lower, entrant.figures(|one| one.latency_at(99.0)))
        .metric("p99.9", "us", lower, entrant.figures(|one| one.latency_at(99.9)))
        .metric("extents", "", Better::Neither, extents)
        .metric("making", "ms", lower, entrant.figures(|one| one.making_ms))
}

/// A figure of each round, or of none if it is not known of all.
fn known(entrant: &Entrant<Way, Figures>, figure: impl Fn(&Figures) -> Option<f64>) -> Vec<f64> {
    entrant.samples().iter().map(figure).collect::<Option<_>>().unwrap_or_default()
}

/// The round in the middle, by its rate.
fn median(figures: &[Figures]) -> Option<&Figures> {
    let mut sorted: Vec<&Figures> = figures.iter().collect();
    sorted.sort_by(|one, other| one.rate.total_cmp(&other.rate));
    sorted.get(sorted.len().saturating_sub(1) / 2).copied()
}

/// Curves of one round, as far as it is known: each rate is at the end of its step.
fn series(figures: &Figures, seconds: f64) -> Vec<Series> {
    let step = seconds / figures.rates.len() as f64;
    let rates = figures.rates.iter().zip(1_u32..).filter(|(rate, _)| rate.is_finite());
    let latencies = PERCENTILES.iter().zip(figures.latency_us);
    let rates = rates.map(|(rate, number)| [f64::from(number) * step, *rate]).collect();
    let latencies = latencies.map(|(percentile, micros)| [*percentile, micros]).collect();
    let mut series = vec![
        Series::new("IOPS over time", "s", "IOPS", rates),
        Series::new("latency percentiles", "percentile", "us", latencies),
    ];
    series.retain(|series| !series.points.is_empty());
    series
}
