//! All contenders against each other in one cell, and the cases that come of it.

use std::path::Path;
use std::rc::Rc;

use super::contender::{Cell, Contender};
use super::keeper::Keeper;
use super::round::{Sample, Times, measure};
use crate::call_times::Latency;
use crate::error::{Error, Result};
use crate::faster;
use crate::footprint::Footprint;
use crate::report::{Better, Case};
use crate::stats::{Spread, ratios};
use crate::suite::{Arena, Entrant, Turn};

/// The baseline of the ratios …
pub(super) const LIMIT: &str = "direct-dsync";
/// … and their name.
pub(super) const RATIO: &str = "speed against direct-dsync";

/// A bare file that nothing is prepared for.
const GROWING: &str = "bare-append";
/// Records from this length on are counted in bytes, too.
const LONG_BYTES: usize = 64 << 10;

/// Runs a warm-up, which is not counted, and the rounds of `arena`.
pub(super) fn run(
    cell: &Cell,
    contenders: &[Rc<dyn Contender>],
    times: Times,
    arena: &mut Arena<'_>,
) -> Result<Vec<Case>> {
    let Cell { bytes, threads, processes, .. } = cell;
    let mut entrants: Vec<Entrant<Keeper, Sample>> = Vec::new();
    for (index, contender) in contenders.iter().enumerate() {
        let probed = arena.aside(|dir| probe(&**contender, dir, cell))?;
        let name = format!("{bytes} B {processes}x{threads} {}", contender.name());
        let dir = arena.place.dir.join(format!("log-{index}"));
        entrants.push(Entrant::new(name, Keeper::new(Rc::clone(contender), dir), probed));
    }
    let rounds = arena.rounds;
    arena.rounds(&mut entrants, |keeper, Turn { round, .. }| {
        let sample = measure(keeper.ready(cell)?, cell, round, times)?;
        if round == rounds {
            keeper.look_at_files()?;
        }
        Ok(sample)
    })?;
    for entrant in &mut entrants {
        entrant.way.clear()?;
    }
    Ok(cases(cell, &entrants, arena))
}

fn probe(contender: &dyn Contender, dir: &Path, cell: &Cell) -> Result<()> {
    if cell.commits_max == 0 {
        return Err(Error::unsupported("not even a few commits of each thread fit the disk"));
    }
    contender.probe(dir, cell).map_err(Error::unsupported)
}

fn speeds(entrant: &Entrant<Keeper, Sample>) -> Vec<f64> {
    entrant.figures(|sample| sample.commits_per_second)
}

fn cases(cell: &Cell, entrants: &[Entrant<Keeper, Sample>], arena: &Arena<'_>) -> Vec<Case> {
    let limit = entrants.iter().find(|entrant| entrant.way.contender.name() == LIMIT).map(speeds);
    let peers = entrants.iter().filter(|entrant| entrant.way.contender.is_peer());
    let median = |speeds: &Vec<f64>| Spread::of(speeds).map_or(0.0, |speeds| speeds.median);
    let best = peers.map(speeds).max_by(|one, two| median(one).total_cmp(&median(two)));
    let (limit, best) = (limit.unwrap_or_default(), best.unwrap_or_default());
    let yes_or_no = |is: bool| if is { "yes" } else { "no" };
    let case = |entrant: &Entrant<Keeper, Sample>| {
        let contender = &entrant.way.contender;
        let case = arena
            .case(format!("records of {} B", cell.bytes))
            .key("bytes", cell.bytes)
            .key("processes", cell.processes)
            .key("threads", cell.threads)
            .key("case", contender.name())
            .key("prepared", yes_or_no(contender.is_prepared()))
            .key("peer", yes_or_no(contender.is_peer()));
        let case = with_preparing(with_speeds(case, entrant, &limit, &best), entrant, entrants);
        let case = with_throughput(case, cell.bytes, &speeds(entrant));
        entrant.case(with_latencies(with_files(case, entrant), entrant.samples()))
    };
    entrants.iter().map(case).collect()
}

fn with_speeds(
    case: Case,
    entrant: &Entrant<Keeper, Sample>,
    limit: &[f64],
    best_peer: &[f64],
) -> Case {
    let (higher, speeds) = (Better::Higher, speeds(entrant));
    let syncs = entrant.samples().iter().filter_map(|sample| sample.syncs_per_commit).collect();
    case.metric("speed", "commits/s", higher, speeds.clone())
        .metric(RATIO, "x", higher, ratios(&speeds, limit))
        .metric("speed against the best peer", "x", higher, ratios(&speeds, best_peer))
        .metric("syncs", "per commit", Better::Neither, syncs)
}

/// The gain by preparing in this cell: against the same without, and of a bare file against one
/// that grows.
fn with_preparing(
    case: Case,
    entrant: &Entrant<Keeper, Sample>,
    entrants: &[Entrant<Keeper, Sample>],
) -> Case {
    let contender = &entrant.way.contender;
    let is_bare = contender.name().starts_with("bare-");
    let name = if is_bare { GROWING } else { contender.name() };
    let is_other = |other: &&Entrant<Keeper, Sample>| {
        let other = &other.way.contender;
        other.name() == name && !other.is_prepared()
    };
    let other = entrants.iter().filter(|_| contender.is_prepared()).find(is_other);
    let Some((ours, theirs)) = other.map(|other| (speeds(entrant), speeds(other))) else {
        return case;
    };
    let case = case.metric("speed against unprepared", "x", Better::Higher, ratios(&ours, &theirs));
    match faster::verdict(&ours, &theirs) {
        Some(word) => case.finding("prepared is", word),
        None => case,
    }
}

/// Of records so long that the bytes count.
fn with_throughput(case: Case, bytes: usize, speeds: &[f64]) -> Case {
    let gigabytes = speeds.iter().map(|speed| speed * bytes as f64 / 1e9);
    let gigabytes = gigabytes.filter(|_| bytes >= LONG_BYTES).collect();
    case.metric("throughput", "GB/s", Better::Neither, gigabytes)
}

/// The footprint of the last round, unless the contender has failed.
fn with_files(case: Case, entrant: &Entrant<Keeper, Sample>) -> Case {
    let neither = Better::Neither;
    let footprint = entrant.way.footprint.filter(|_| !entrant.samples().is_empty());
    let Some(Footprint { files, file_bytes, extents, cold_read_mib_per_second }) = footprint else {
        return case;
    };
    case.metric("files", "", neither, vec![files as f64])
        .metric("file bytes", "bytes", neither, vec![file_bytes as f64])
        .metric("extents", "", neither, extents.iter().map(|count| *count as f64).collect())
        .metric("cold read", "MiB/s", Better::Higher, Vec::from_iter(cold_read_mib_per_second))
}

/// Those of the rounds, which can be compared, and those of all taken together.
fn with_latencies(case: Case, samples: &[Sample]) -> Case {
    let (lower, neither) = (Better::Lower, Better::Neither);
    let of = |nanos: &[u64]| Latency::of(&mut nanos.to_vec());
    let rounds: Vec<Latency> = samples.iter().filter_map(|sample| of(&sample.nanos)).collect();
    let each = |part: fn(&Latency) -> f64| rounds.iter().map(part).collect();
    let case = case.metric("latency p50", "us", lower, each(|latency| latency.p50)).metric(
        "latency p99",
        "us",
        lower,
        each(|latency| latency.p99),
    );
    let nanos: Vec<u64> = samples.iter().flat_map(|sample| sample.nanos.iter().copied()).collect();
    let Some(all) = of(&nanos) else { return case };
    case.metric("latency p99.9", "us", lower, each(|latency| latency.p999))
        .metric("all commits", "", neither, vec![nanos.len() as f64])
        .metric("all latencies, avg", "us", lower, vec![all.avg])
        .metric("all latencies, min", "us", lower, vec![all.min])
        .metric("all latencies, max", "us", lower, vec![all.max])
        .metric("all latencies, stddev", "us", lower, vec![all.stddev])
        .metric("all latencies, outliers", "%", neither, vec![all.outlier_percent])
}
