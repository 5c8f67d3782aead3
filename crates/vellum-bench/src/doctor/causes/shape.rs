//! Causes by the shape of the figures over time.

use vellum_command::samples::quantile_of;

use crate::cause::Cause;
use crate::doctor::evidence::{Evidence, Finding, FlatOut, Weight};
use crate::doctor::machine::OtherIo;
use crate::doctor::series::{Series, Tick, median};
use crate::doctor::trials::Probe;

/// With fewer ticks there is no shape.
const TICKS_MIN: usize = 10;
/// Of two parts of the time, the slower takes at least so many times as long.
const STEP: f64 = 2.0;
/// After less than this share of the time the step is a higher one.
const SHORT: f64 = 0.1;
const STEP_SHORT: f64 = 4.0;
/// Where processors are scarce, it is so much longer.
const STEP_IF_SCARCE_US: f64 = 10_000.0;
/// What comes after the step takes at least this share.
const LONG: f64 = 0.2;
/// A stall is so many times as long as the median …
const STALL: f64 = 20.0;
/// … and at least so long.
const STALL_MIN_US: f64 = 100_000.0;
/// One stall is told only if it is so long.
const STALL_ALONE_US: f64 = 1_000_000.0;
/// Stalls have one length if each takes at least this share of the longest.
const ONE_LENGTH: f64 = 0.75;
/// What is seen in more of the ticks is not rare.
const RARE: f64 = 0.3;
/// Of ten ticks of a flat rate the highest and the lowest are no farther apart than this share of
/// the median.
const FLAT: f64 = 0.4;
/// At half of the pace a throttled disk takes less than so much of the time.
const PACED: f64 = 0.33;
/// Faster writes are not looked at for a throttle.
const THROTTLED_MIN_US: f64 = 1000.0;
/// In jitter, of ten writes the slowest takes so many times as long as the fastest …
const JITTER: f64 = 4.0;
/// … and so much longer.
const JITTER_MIN_US: f64 = 2000.0;
/// Where a disk is free or busy with others, the slow writes take so many times as long.
const EITHER: f64 = 15.0;
/// Many fast writes fit between two slow ones: waiting takes most of the time where the mean is so
/// many times the median.
const WAITING: f64 = 2.0;
/// A slow stretch is at least so many times as slow as the fast ones.
const STRETCH: f64 = 2.5;
const STRETCH_MIN_US: f64 = 1000.0;
/// A disk that grows slower does so from each part of the run to the next …
const PARTS: usize = 4;
const GROWS: f64 = 1.1;
const STEP_OF_GROWTH: f64 = 0.75;
/// … and in all by so many times, and so much.
const SLOWER: f64 = 1.6;
const SLOWER_MIN_US: f64 = 300.0;
/// From here on others use the disk.
const OTHERS_OPERATIONS: f64 = 100.0;
const OTHERS_BYTES: f64 = (4 << 20) as f64;

/// All causes that the figures show. A device with a limit that is known needs no neighbour to
/// explain what it does.
pub(super) fn causes(evidence: &Evidence<'_>, is_limited: bool) -> Vec<Finding> {
    let (throttle, slows_down) = (throttle(evidence), slows_down(evidence));
    let is_free = throttle.is_none() && slows_down.is_none() && !is_limited;
    let unseen = || is_free.then(|| unseen_neighbour(evidence)).flatten();
    let rules = [
        failures(evidence.series),
        seen_neighbour(evidence.others).or_else(unseen),
        budget_ends(evidence).filter(|_| slows_down.is_none()),
        throttle,
        stalls(evidence),
        slows_down,
        jitter(evidence),
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

/// Others that it does not see, beyond the disk.
fn unseen_neighbour(evidence: &Evidence<'_>) -> Option<Finding> {
    slow_stretches(evidence).or_else(|| free_or_busy(evidence))
}

/// A write finds the disk free, or waits for the requests of others. A write over older blocks must
/// do so as well: a journal takes its time only where something else is written.
fn free_or_busy(evidence: &Evidence<'_>) -> Option<Finding> {
    let overwritten = evidence.probe.and_then(Probe::spread_us);
    if overwritten.is_some_and(|(fast, slow)| slow < JITTER * fast) {
        return None;
    }
    let Spread { fast, slow, slowest, waiting, .. } = spread(evidence)?;
    let is_apart = |slow: f64| slow >= EITHER * fast && slow - fast >= JITTER_MIN_US;
    let slow = match (is_apart(slow), waiting >= WAITING && is_apart(slowest)) {
        (true, _) => slow,
        (_, true) => slowest,
        _ => return None,
    };
    Some(Finding::new(
        Cause::Neighbour,
        Weight::Reason,
        format!(
            "a write takes {:.2} ms where the disk is free and up to {:.2} ms where it is not{}, \
             and nobody on this machine used it: somebody beyond it does",
            fast / 1e3,
            slow / 1e3,
            overwritten.map_or_else(String::new, |(fast, slow)| format!(
                " (over older blocks {:.2} and {:.2} ms, so that it is no journal)",
                fast / 1e3,
                slow / 1e3
            )),
        ),
    ))
}

/// The disk is slow for a while, again and again.
fn slow_stretches(evidence: &Evidence<'_>) -> Option<Finding> {
    let times = evidence.disk.all(|tick| tick.p50_us);
    // Where processors are scarce it is they that are shared.
    if times.len() < TICKS_MIN || evidence.processors.are_scarce() {
        return None;
    }
    let fast = quantile_of(&times, 0.2);
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
    let p99 = evidence.disk.busy().into_iter().filter(|tick| is_slow(&tick.p50_us));
    let longer: Vec<f64> = p99.map(|tick| tick.p99_us - fast).collect();
    Some(Finding::new(
        Cause::Neighbour,
        evidence.weight_of(median(&longer)),
        format!(
            "{long} times the disk was {STRETCH} times as slow for a while, {share} % of the time \
             in all, and nobody on this machine used it: somebody beyond it does"
        ),
    ))
}

/// First fast, then slow to the end. What came before anything was counted belongs to it.
fn budget_ends(evidence: &Evidence<'_>) -> Option<Finding> {
    let series = evidence.disk;
    let all = series.early.iter().chain(&series.calls);
    let busy: Vec<&Tick> = all.filter(|tick| tick.operations > 0).collect();
    let times: Vec<f64> = busy.iter().map(|tick| tick.mean_us).collect();
    let split = split(&times)?;
    let (fast, slow) = times.split_at(split);
    let (begun, at, end) = (busy.first()?.at_ms, busy.get(split)?.at_ms, busy.last()?.at_ms);
    // The first moments of a disk are often better; a budget that ends so soon was a large one.
    let is_short = at - begun < SHORT * (end - begun);
    let step = if is_short { STEP_SHORT } else { STEP };
    let is_step =
        median(slow) >= step * median(fast) && quantile_of(slow, 0.1) > quantile_of(fast, 0.9);
    // A disk that grows slower bit by bit has no budget that ends.
    let has_levels = quantile_of(slow, 0.25) >= 0.5 * median(slow) && median(slow) >= 100.0;
    // Others that come in the middle of a run part it in two as well.
    let is_clear =
        !evidence.processors.are_scarce() || median(slow) - median(fast) >= STEP_IF_SCARCE_US;
    let is_long = (end - at) >= LONG * (end - begun) && is_clear;
    if times.len() < TICKS_MIN || !is_step || !has_levels || !is_long {
        return None;
    }
    let p99 = median(&busy[split..].iter().map(|tick| tick.p99_us).collect::<Vec<f64>>());
    Some(Finding::new(
        Cause::BudgetEnds,
        evidence.weight_of(p99 - median(fast)),
        format!(
            "at the same pace a write took {:.2} ms for the first {:.1} s and {:.2} ms from then on",
            median(fast) / 1e3,
            (at - begun) / 1e3,
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
    let splits = 3..=logs.len().checked_sub(3)?;
    splits.min_by(|one, other| {
        let both = |split: usize| distance(&logs[..split]) + distance(&logs[split..]);
        both(*one).total_cmp(&both(*other))
    })
}

/// Is it the same number of writes in every tick? The ends of slices are no whole ticks.
pub(in crate::doctor) fn is_flat(series: &Series) -> bool {
    let is_whole = |index: &usize| !series.slice_ends.contains(&(index + 1));
    let whole = series.calls.iter().enumerate().filter(|(index, _)| is_whole(index));
    let rates: Vec<f64> = whole.map(|(_, tick)| tick.per_second()).collect();
    let middle = median(&rates);
    rates.len() >= TICKS_MIN / 2
        && middle > 0.0
        && quantile_of(&rates, 0.9) - quantile_of(&rates, 0.1) <= FLAT * middle
        && median(&series.all(|tick| tick.mean_us)) >= THROTTLED_MIN_US
}

/// As many writes as are allowed: at half of the pace each takes next to nothing.
fn throttle(evidence: &Evidence<'_>) -> Option<Finding> {
    let FlatOut { fastest, halved } = evidence.flat_out?;
    let halved = halved.as_ref()?;
    let mean = |series: &Series| median(&series.all(|tick| tick.mean_us));
    let (free, held) = (mean(halved), mean(fastest));
    if halved.busy().is_empty() || !is_flat(fastest) || free > PACED * held {
        return None;
    }
    let rate = median(&fastest.all(Tick::per_second));
    Some(Finding::new(
        Cause::Throttle,
        evidence.weight_of(median(&fastest.all(|tick| tick.p99_us)) - free),
        format!(
            "{rate:.0} writes a second and no more: at half of that pace a write takes {:.2} ms \
             and not {:.2} ms",
            free / 1e3,
            held / 1e3
        ),
    ))
}

/// At times everything stands still.
fn stalls(evidence: &Evidence<'_>) -> Option<Finding> {
    let series = evidence.disk;
    let busy = series.busy();
    let usual = median(&series.all(|tick| tick.p50_us));
    // Of a tick that is one stall there is no usual time but that of the others.
    let usual = |tick: &Tick| if tick.operations >= 10 { tick.p50_us } else { usual };
    let is_stalled = |tick: &&&Tick| tick.max_us >= (STALL * usual(tick)).max(STALL_MIN_US);
    let stalled: Vec<&&Tick> = busy.iter().filter(is_stalled).collect();
    let longest = stalled.iter().map(|tick| tick.max_us).fold(0.0, f64::max);
    let is_rare = stalled.len() as f64 <= RARE * busy.len() as f64;
    let all_us = series.calls.iter().map(|tick| tick.span_ms * 1e3).sum::<f64>();
    let share = stalled.iter().map(|tick| tick.max_us).sum::<f64>() / all_us;
    let is_told = stalled.len() >= 2 || longest >= STALL_ALONE_US;
    if !is_rare || !is_told || longest == 0.0 {
        return None;
    }
    let long: Vec<&&Tick> =
        stalled.iter().copied().filter(|tick| tick.max_us >= longest / 2.0).collect();
    let gaps: Vec<f64> =
        long.windows(2).map(|pair| (pair[1].at_ms - pair[0].at_ms) / 1e3).collect();
    let every = regular(&gaps);
    // Where processors are scarce a writer stands still now and then, but neither by the clock nor
    // always for the same time.
    let is_by_clock = every.is_some() || longest >= STALL_ALONE_US;
    let is_believed = is_by_clock && has_one_length(&long, longest, stalled.len());
    if evidence.processors.are_scarce() && !is_believed {
        return None;
    }
    let every = every.map_or_else(String::new, |gap| format!(", every {gap:.0} s"));
    let count = stalled.len();
    let times = if count == 1 { String::from("once") } else { format!("{count} times") };
    Some(Finding::new(
        Cause::Stalls,
        evidence.weight_of_stops(longest, share),
        format!("{times} all writes stood still, for up to {:.0} ms{every}", longest / 1e3),
    ))
}

/// Are the long stalls, which are more than half of all, about as long as the longest?
fn has_one_length(long: &[&&Tick], longest: f64, all: usize) -> bool {
    let is_as_long = |tick: &&&Tick| tick.max_us >= ONE_LENGTH * longest;
    long.len() >= 2 && long.len() * 2 > all && long.iter().all(is_as_long)
}

/// The gap that all of `gaps` are about as long as.
fn regular(gaps: &[f64]) -> Option<f64> {
    let middle = median(gaps);
    let is_near = |gap: &f64| (gap - middle).abs() <= 0.35 * middle;
    (gaps.len() >= 2 && gaps.iter().all(is_near)).then_some(middle)
}

/// At the same pace it grows slower bit by bit: it heats up, or wears out, or has less and less
/// room.
fn slows_down(evidence: &Evidence<'_>) -> Option<Finding> {
    let times = evidence.disk.all(|tick| tick.p50_us);
    if times.len() < TICKS_MIN || evidence.processors.are_scarce() {
        return None;
    }
    let parts: Vec<f64> = times.chunks(times.len().div_ceil(PARTS)).map(median).collect();
    let (first, last) = (*parts.first()?, *parts.last()?);
    let steps = || parts.windows(2).map(|pair| pair[1] / pair[0].max(1.0));
    let largest = steps().fold(1.0, f64::max);
    // One step that is most of it is the end of something, and no growth.
    let is_step = largest.ln() > STEP_OF_GROWTH * (last / first.max(1.0)).ln();
    let grows = steps().all(|step| step >= GROWS) && !is_step;
    let is_slower = last >= SLOWER * first && last - first >= SLOWER_MIN_US;
    let p99 = evidence.disk.all(|tick| tick.p99_us);
    let p99 = p99.chunks(p99.len().div_ceil(PARTS)).map(median).fold(0.0, f64::max);
    (parts.len() == PARTS && grows && is_slower).then(|| {
        let told: Vec<String> = parts.iter().map(|part| format!("{:.2}", part / 1e3)).collect();
        Finding::new(
            Cause::SlowsDown,
            evidence.weight_of(p99 - first),
            format!(
                "at the same pace a write took {} ms in the four quarters of the run: the disk grows \
                 slower",
                told.join(", ")
            ),
        )
    })
}

/// No two writes take the same time.
fn jitter(evidence: &Evidence<'_>) -> Option<Finding> {
    let Spread { fast, slow, ratio, .. } = spread(evidence)?;
    (ratio >= JITTER && slow - fast >= JITTER_MIN_US).then(|| {
        Finding::new(
            Cause::Jitter,
            Weight::Reason,
            format!(
                "at all times one write of ten takes {:.2} ms or less and one {:.2} ms or more",
                fast / 1e3,
                slow / 1e3
            ),
        )
    })
}

/// How far writes are apart because of the disk. Where processors are scarce, writes wait for them,
/// and so does whoever answers for the disk.
fn spread(evidence: &Evidence<'_>) -> Option<Spread> {
    Spread::of(evidence.series).filter(|_| !evidence.processors.are_scarce())
}

/// How far writes of the same time are apart, in the middle of all ticks with enough of them.
struct Spread {
    /// p10 and p90.
    fast: f64,
    slow: f64,
    /// p99.
    slowest: f64,
    /// Of p90 to p10.
    ratio: f64,
    /// Of the mean to the median.
    waiting: f64,
}

impl Spread {
    fn of(series: &Series) -> Option<Spread> {
        let enough: Vec<&Tick> =
            series.busy().into_iter().filter(|tick| tick.operations >= 10).collect();
        let middle = |figure: &dyn Fn(&Tick) -> f64| {
            median(&enough.iter().map(|tick| figure(tick)).collect::<Vec<f64>>())
        };
        (enough.len() >= TICKS_MIN / 2).then(|| Spread {
            fast: middle(&|tick| tick.p10_us),
            slow: middle(&|tick| tick.p90_us),
            slowest: middle(&|tick| tick.p99_us),
            ratio: middle(&|tick| tick.p90_us / tick.p10_us.max(1.0)),
            waiting: middle(&|tick| tick.mean_us / tick.p50_us.max(1.0)),
        })
    }
}
