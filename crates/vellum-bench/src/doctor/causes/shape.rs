//! Causes by the shape of the figures over time.

use crate::cause::Cause;
use crate::doctor::evidence::{Evidence, Finding, Weight};
use crate::doctor::machine::OtherIo;
use crate::doctor::series::{Series, Tick, median, quantile};

/// With fewer ticks there is no shape.
const TICKS_MIN: usize = 10;
/// Of two parts of the time, the slower takes at least so many times as long.
const STEP: f64 = 2.0;
/// A stall is so many times as long as the median …
const STALL: f64 = 20.0;
/// … and at least so long.
const STALL_MIN_US: f64 = 100_000.0;
/// One stall is told only if it is so long.
const STALL_ALONE_US: f64 = 1_000_000.0;
/// What is seen in more of the ticks is not rare.
const RARE: f64 = 0.3;
/// Nine of ten ticks of a flat rate lie within this of the median.
const FLAT: f64 = 0.15;
/// At half of the pace a throttled disk takes less than so much of the time.
const PACED: f64 = 0.33;
/// Faster writes are not looked at for a throttle.
const THROTTLED_MIN_US: f64 = 1000.0;
/// In jitter, of ten writes the slowest takes so many times as long as the fastest …
const JITTER: f64 = 4.0;
/// … and so much longer.
const JITTER_MIN_US: f64 = 2000.0;
/// A slow stretch is at least so many times as slow as the fast ones.
const STRETCH: f64 = 2.5;
const STRETCH_MIN_US: f64 = 1000.0;
/// From here on others use the disk.
const OTHERS_OPERATIONS: f64 = 100.0;
const OTHERS_BYTES: f64 = (4 << 20) as f64;

/// All causes that the figures show.
pub(super) fn causes(evidence: &Evidence<'_>) -> Vec<Finding> {
    let series = evidence.series;
    let rules = [
        failures(series),
        seen_neighbour(evidence.others).or_else(|| unseen_neighbour(series)),
        budget_ends(series),
        throttle(evidence),
        stalls(series),
        jitter(series),
    ];
    rules.into_iter().flatten().collect()
}

fn failures(series: &Series) -> Option<Finding> {
    let failure = series.failures.first()?;
    let cause = match failure.errno {
        Some(libc::ENOSPC) => Cause::NoSpace,
        Some(libc::EDQUOT) => Cause::Quota,
        Some(_) => Cause::WriteErrors,
        None => Cause::LostWrites,
    };
    let after = failure.after_operations;
    let what = format!("after {after} writes: {}", failure.what);
    Some(Finding::new(cause, Weight::Danger, what))
}

/// Others that this machine sees.
fn seen_neighbour(pauses: &[OtherIo]) -> Option<Finding> {
    let is_busy = |one: &&OtherIo| one.operations >= OTHERS_OPERATIONS || one.bytes >= OTHERS_BYTES;
    let busy: Vec<&OtherIo> = pauses.iter().filter(is_busy).collect();
    if busy.len() * 2 <= pauses.len() {
        return None;
    }
    let middle = |figure: fn(&OtherIo) -> f64| {
        median(&busy.iter().map(|one| figure(one)).collect::<Vec<f64>>())
    };
    let (operations, bytes) = (middle(|one| one.operations), middle(|one| one.bytes));
    Some(Finding::new(
        Cause::Neighbour,
        Weight::Reason,
        format!(
            "others do {operations:.0} reads and writes and {:.1} MB a second on this disk, while \
             nothing is measured",
            bytes / 1e6
        ),
    ))
}

/// Others that it does not see: the disk is slow for a while, again and again.
fn unseen_neighbour(series: &Series) -> Option<Finding> {
    let times = series.all(|tick| tick.p50_us);
    if times.len() < TICKS_MIN {
        return None;
    }
    let fast = quantile(&times, 0.2);
    let is_slow = |time: &f64| *time >= STRETCH * fast && time - fast >= STRETCH_MIN_US;
    let slow = times.iter().filter(|time| is_slow(time)).count();
    let stretches: Vec<usize> = times
        .chunk_by(|one, other| is_slow(one) == is_slow(other))
        .filter(|stretch| is_slow(&stretch[0]))
        .map(<[f64]>::len)
        .collect();
    // A stretch that fills a tick or two by chance is none.
    let long = stretches.iter().filter(|len| **len >= 2).count();
    if long < 2 || long * 2 < stretches.len() {
        return None;
    }
    let share = 100 * slow / times.len();
    Some(Finding::new(
        Cause::Neighbour,
        Weight::Reason,
        format!(
            "{long} times the disk was {STRETCH} times as slow for a while, {share} % of the time \
             in all, and nobody on this machine used it: somebody beyond it does"
        ),
    ))
}

/// First fast, then slow to the end.
fn budget_ends(series: &Series) -> Option<Finding> {
    let busy = series.busy();
    let times: Vec<f64> = busy.iter().map(|tick| tick.mean_us).collect();
    if times.len() < TICKS_MIN {
        return None;
    }
    let split = split(&times)?;
    let (fast, slow) = times.split_at(split);
    let is_step = median(slow) >= STEP * median(fast) && quantile(slow, 0.1) > quantile(fast, 0.9);
    // A disk that grows slower bit by bit has no budget that ends.
    let has_levels = quantile(slow, 0.25) >= 0.5 * median(slow) && median(slow) >= 100.0;
    if !is_step || !has_levels {
        return None;
    }
    let at = busy.get(split).map_or(0.0, |tick| tick.at_ms) / 1e3;
    Some(Finding::new(
        Cause::BudgetEnds,
        Weight::Reason,
        format!(
            "a write took {:.2} ms for the first {at:.0} s and {:.2} ms from then on",
            median(fast) / 1e3,
            median(slow) / 1e3
        ),
    ))
}

/// Where `times` are parted into two levels best: where they are the least far from the middle of
/// their part, counted in factors.
fn split(times: &[f64]) -> Option<usize> {
    let logs: Vec<f64> = times.iter().map(|time| time.max(1e-3).ln()).collect();
    let distance = |part: &[f64]| {
        let middle = median(part);
        part.iter().map(|log| (log - middle).abs()).sum::<f64>()
    };
    let least = (logs.len() / 10).max(3);
    let splits = least..=logs.len().checked_sub(least)?;
    splits.min_by(|one, other| {
        let both = |split: usize| distance(&logs[..split]) + distance(&logs[split..]);
        both(*one).total_cmp(&both(*other))
    })
}

/// Is it the same number of writes in every tick? The ends of slices are no whole ticks.
pub(in crate::doctor) fn is_flat(series: &Series) -> bool {
    let is_whole = |index: &usize| !series.slice_ends.contains(&(index + 1));
    let whole = series.ticks.iter().enumerate().filter(|(index, _)| is_whole(index));
    let rates: Vec<f64> = whole.map(|(_, tick)| tick.per_second()).collect();
    let middle = median(&rates);
    rates.len() >= TICKS_MIN / 2
        && middle > 0.0
        && quantile(&rates, 0.9) - quantile(&rates, 0.1) <= FLAT * middle
        && median(&series.all(|tick| tick.mean_us)) >= THROTTLED_MIN_US
}

/// As many writes as are allowed: at half of the pace each takes next to nothing.
fn throttle(evidence: &Evidence<'_>) -> Option<Finding> {
    let (series, paced) = (evidence.series, evidence.paced?);
    let mean = |series: &Series| median(&series.all(|tick| tick.mean_us));
    let (free, held) = (mean(paced), mean(series));
    if paced.busy().is_empty() || !is_flat(series) || free > PACED * held {
        return None;
    }
    let rate = median(&series.all(Tick::per_second));
    Some(Finding::new(
        Cause::Throttle,
        Weight::Reason,
        format!(
            "{rate:.0} writes a second and no more: at half of that pace a write takes {:.2} ms \
             and not {:.2} ms",
            free / 1e3,
            held / 1e3
        ),
    ))
}

/// At times everything stands still.
fn stalls(series: &Series) -> Option<Finding> {
    let busy = series.busy();
    let usual = median(&series.all(|tick| tick.p50_us));
    // Of a tick that is one stall there is no usual time but that of the others.
    let usual = |tick: &Tick| if tick.operations >= 10 { tick.p50_us } else { usual };
    let is_stalled = |tick: &&&Tick| tick.max_us >= (STALL * usual(tick)).max(STALL_MIN_US);
    let stalled: Vec<&&Tick> = busy.iter().filter(is_stalled).collect();
    let longest = stalled.iter().map(|tick| tick.max_us).fold(0.0, f64::max);
    let is_rare = stalled.len() as f64 <= RARE * busy.len() as f64;
    let is_told = stalled.len() >= 2 || longest >= STALL_ALONE_US;
    if !is_rare || !is_told || longest == 0.0 {
        return None;
    }
    let gaps: Vec<f64> =
        stalled.windows(2).map(|pair| (pair[1].at_ms - pair[0].at_ms) / 1e3).collect();
    let every = regular(&gaps).map_or_else(String::new, |gap| format!(", every {gap:.0} s"));
    let count = stalled.len();
    let times = if count == 1 { String::from("once") } else { format!("{count} times") };
    Some(Finding::new(
        Cause::Stalls,
        Weight::Reason,
        format!("{times} all writes stood still, for up to {:.0} ms{every}", longest / 1e3),
    ))
}

/// The gap that all of `gaps` are about as long as.
fn regular(gaps: &[f64]) -> Option<f64> {
    let middle = median(gaps);
    let is_near = |gap: &f64| (gap - middle).abs() <= 0.35 * middle;
    (gaps.len() >= 2 && gaps.iter().all(is_near)).then_some(middle)
}

/// No two writes take the same time.
fn jitter(series: &Series) -> Option<Finding> {
    let enough: Vec<&Tick> =
        series.busy().into_iter().filter(|tick| tick.operations >= 10).collect();
    let spreads: Vec<f64> = enough.iter().map(|tick| tick.p90_us / tick.p10_us.max(1.0)).collect();
    let widths: Vec<f64> = enough.iter().map(|tick| tick.p90_us - tick.p10_us).collect();
    if enough.len() < TICKS_MIN / 2 || median(&spreads) < JITTER || median(&widths) < JITTER_MIN_US
    {
        return None;
    }
    let middle = |figure: fn(&Tick) -> f64| {
        median(&enough.iter().map(|tick| figure(tick)).collect::<Vec<f64>>()) / 1e3
    };
    Some(Finding::new(
        Cause::Jitter,
        Weight::Reason,
        format!(
            "at all times one write of ten takes {:.2} ms or less and one {:.2} ms or more",
            middle(|tick| tick.p10_us),
            middle(|tick| tick.p90_us)
        ),
    ))
}
