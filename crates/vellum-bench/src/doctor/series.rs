//! What was measured of one program over time: a row of figures for each stretch of a second or
//! less. It is kept whole, and the rules about causes are functions of it.

use serde::Serialize;
use vellum_command::samples;

use super::program::Figure;
use crate::histogram::Histogram;

/// The figures of one stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Tick {
    /// When it began, in milliseconds of the run.
    pub at_ms: f64,
    /// How long it was.
    pub span_ms: f64,
    /// How many writes ended in it, with what gets them onto the device.
    pub operations: u64,
    /// How long one took from when it was due, in the mean.
    pub mean_us: f64,
    /// Nine of ten took longer.
    pub p10_us: f64,
    /// Half of them took no longer.
    pub p50_us: f64,
    /// Nine of ten took no longer.
    pub p90_us: f64,
    /// 99 of a hundred took no longer.
    pub p99_us: f64,
    /// 999 of a thousand took no longer.
    pub p999_us: f64,
    /// The longest.
    pub max_us: f64,
    /// Half of the writes took no longer, without what gets them onto the device.
    pub write_p50_us: f64,
    /// The longest flush of another thread that ended in it; 0 without one.
    pub flush_max_us: f64,
}

/// How long an operation took, and when.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Operation {
    /// When it ended, since the slice began.
    pub(super) end_ns: u64,
    /// From when its first record was due to its end.
    pub(super) whole_ns: u64,
    /// From its begin to its end.
    pub(super) call_ns: u64,
    /// The write alone.
    pub(super) write_ns: u64,
    /// How many records shared it.
    pub(super) records: u32,
    /// How far apart its records were due; 0 where they follow one another.
    pub(super) step_ns: u64,
}

/// Of a write that many records share, so many of them are counted one by one.
const PARTS_MAX: u32 = 32;

impl Operation {
    /// How long its records waited, each from when it was due, with how many waited so.
    fn waits(&self) -> impl Iterator<Item = (u64, u64)> + use<> {
        let Operation { whole_ns, records, step_ns, .. } = *self;
        let parts = if step_ns == 0 { 1 } else { records.clamp(1, PARTS_MAX) };
        (0..parts).map(move |part| {
            let index = |part: u32| u64::from(records) * u64::from(part) / u64::from(parts);
            let (from, to) = (index(part), index(part + 1));
            (whole_ns.saturating_sub(from * step_ns), to - from)
        })
    }
}

/// A flush by another thread: when it ended, and how long it took.
pub(super) type Flush = (u64, u64);

/// Everything measured of one program.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// In the order of time.
    pub ticks: Vec<Tick>,
    /// The same ticks of single calls, from the begin of each to its end. A disk shows itself in
    /// them, whatever the pace.
    pub(super) calls: Vec<Tick>,
    /// Calls before anything was counted, in finer ticks: a small budget ends here.
    pub(super) early: Vec<Tick>,
    /// The ends of slices, as places in `ticks`: between them other programs had their turn.
    pub(super) slice_ends: Vec<usize>,
    times: Histogram,
    /// The same for each turn.
    turns: Vec<Histogram>,
    /// The same, each weighed by its own length: how the time was spent.
    spent: Histogram,
    flushes: Histogram,
    /// What failed, the first of each sort.
    pub(super) failures: Vec<Failure>,
}

/// A call that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// What was tried, and what the system said.
    pub what: String,
    /// The number of that error, if there is one.
    pub errno: Option<i32>,
    /// After how many writes of the program.
    pub after_operations: u64,
}

impl Series {
    /// Adds a slice that began at `at_ms`, in ticks of `tick_ms`.
    pub(super) fn add(
        &mut self,
        at_ms: f64,
        tick_ms: f64,
        operations: &[Operation],
        flushes: &[Flush],
    ) {
        let mut turn = Histogram::default();
        for one in operations {
            one.waits().for_each(|(nanos, count)| turn.note(nanos, count));
            self.spent.note(one.whole_ns, one.whole_ns / 1000);
        }
        self.times.add(&turn);
        self.turns.push(turn);
        flushes.iter().for_each(|(_, nanos)| self.flushes.note(*nanos, 1));
        self.ticks.extend(ticks(at_ms, tick_ms, operations, flushes, Tick::of_records));
        self.calls.extend(ticks(at_ms, tick_ms, operations, flushes, Tick::of_calls));
        self.slice_ends.push(self.ticks.len());
    }

    /// One of which only the calls are known.
    pub(super) fn of_calls(early: Vec<Tick>, calls: Vec<Tick>) -> Series {
        Series { slice_ends: vec![calls.len()], early, calls, ..Series::default() }
    }

    /// Adds all that `other` has of the same program.
    pub(super) fn absorb(&mut self, other: Series) {
        self.times.add(&other.times);
        self.spent.add(&other.spent);
        self.flushes.add(&other.flushes);
        self.turns.extend(other.turns);
        self.ticks.extend(other.ticks);
        self.calls.extend(other.calls);
        for ticks in [&mut self.ticks, &mut self.calls] {
            ticks.sort_by(|one, other| one.at_ms.total_cmp(&other.at_ms));
        }
        self.slice_ends.clear();
    }

    /// The longest call, in milliseconds.
    pub(super) fn longest_call_ms(&self) -> Option<f64> {
        self.all(|tick| tick.max_us / 1e3).into_iter().max_by(f64::total_cmp)
    }

    /// Adds what is not counted.
    pub(super) fn add_early(&mut self, at_ms: f64, tick_ms: f64, operations: &[Operation]) {
        self.early.extend(ticks(at_ms, tick_ms, operations, &[], Tick::of_calls));
    }

    /// Writes that were measured.
    pub fn operations(&self) -> u64 {
        self.times.count()
    }

    /// A figure of all that was measured, in milliseconds; `None` if nothing was.
    pub fn figure_ms(&self, figure: Figure) -> Option<f64> {
        let (histogram, share) = match figure {
            Figure::P50 => (&self.times, 0.5),
            Figure::P99 => (&self.times, 0.99),
            Figure::P999 => (&self.times, 0.999),
            Figure::Max => (&self.times, 1.0),
            Figure::FlushP99 => (&self.flushes, 0.99),
            Figure::FlushMax => (&self.flushes, 1.0),
        };
        histogram.quantile(share).map(|nanos| nanos as f64 / 1e6)
    }

    /// The share of the time in which a write took longer than this; `None` without any write.
    /// Records that come at a pace share the time evenly. Where each write follows the one before,
    /// few of them end while each takes long, so that each counts for as long as it took.
    pub fn share_beyond(&self, limit_ms: f64, is_paced: bool) -> Option<f64> {
        let histogram = if is_paced { &self.times } else { &self.spent };
        histogram.share_beyond((limit_ms * 1e6) as u64)
    }

    /// For each turn, how many writes there were, and how many of them took longer than this.
    pub(super) fn beyond(&self, limit_ms: f64) -> Vec<(f64, f64)> {
        let of = |turn: &Histogram| {
            let share = turn.share_beyond((limit_ms * 1e6) as u64)?;
            Some((turn.count() as f64, share * turn.count() as f64))
        };
        self.turns.iter().filter_map(of).collect()
    }

    /// The ticks in which a call ended.
    pub(super) fn busy(&self) -> Vec<&Tick> {
        self.calls.iter().filter(|tick| tick.operations > 0).collect()
    }

    /// One figure of the calls of every busy tick.
    pub(super) fn all(&self, figure: impl Fn(&Tick) -> f64) -> Vec<f64> {
        self.busy().into_iter().map(figure).collect()
    }

    /// The earlier and the later half of the ticks.
    pub(super) fn halves(&self) -> (&[Tick], &[Tick]) {
        self.ticks.split_at(self.ticks.len() / 2)
    }

    /// One for a test, from ticks.
    #[cfg(test)]
    pub(super) fn of_ticks(ticks: Vec<Tick>) -> Series {
        let mut series = Series::default();
        for tick in &ticks {
            let mut turn = Histogram::default();
            turn.note((tick.p50_us * 1e3) as u64, tick.operations);
            series.times.add(&turn);
            series.turns.push(turn);
            let spent_us = tick.p50_us * tick.operations as f64;
            series.spent.note((tick.p50_us * 1e3) as u64, spent_us as u64);
        }
        let calls = ticks.clone();
        Series { slice_ends: vec![ticks.len()], ticks, calls, ..series }
    }
}

/// The operations of a slice that began at `at_ms`, tick by tick, each by `of`.
fn ticks(
    at_ms: f64,
    tick_ms: f64,
    operations: &[Operation],
    flushes: &[Flush],
    of: fn(Tick, &[Operation], &[Flush]) -> Tick,
) -> Vec<Tick> {
    let (mut operations, mut flushes, mut ticks) = (operations, flushes, Vec::new());
    let mut end_ms = 0.0;
    while !operations.is_empty() {
        end_ms += tick_ms;
        let end_ns = (end_ms * 1e6) as u64;
        let inside = operations.partition_point(|one| one.end_ns < end_ns);
        let flushed = flushes.partition_point(|(end, _)| *end < end_ns);
        let at_ms = at_ms + end_ms - tick_ms;
        let tick = Tick { at_ms, span_ms: tick_ms, ..Tick::default() };
        ticks.push(of(tick, &operations[..inside], &flushes[..flushed]));
        (operations, flushes) = (&operations[inside..], &flushes[flushed..]);
    }
    ticks
}

impl Tick {
    /// How long records waited.
    fn of_records(self, operations: &[Operation], flushes: &[Flush]) -> Tick {
        self.of(operations.iter().flat_map(Operation::waits).collect(), operations, flushes)
    }

    /// How long calls took.
    fn of_calls(self, operations: &[Operation], flushes: &[Flush]) -> Tick {
        self.of(operations.iter().map(|one| (one.call_ns, 1)).collect(), operations, flushes)
    }

    fn of(self, mut times: Vec<(u64, u64)>, operations: &[Operation], flushes: &[Flush]) -> Tick {
        times.sort_unstable();
        let mut writes: Vec<u64> = operations.iter().map(|one| one.write_ns).collect();
        writes.sort_unstable();
        let count: u64 = times.iter().map(|(_, count)| count).sum();
        let sum: f64 = times.iter().map(|(nanos, count)| *nanos as f64 * *count as f64).sum();
        let at = |share: f64| weighed(&times, count, share) as f64 / 1e3;
        let write_p50 = samples::quantile(&writes, 0.5).unwrap_or(0);
        Tick {
            operations: count,
            mean_us: sum / 1e3 / count.max(1) as f64,
            p10_us: at(0.1),
            p50_us: at(0.5),
            p90_us: at(0.9),
            p99_us: at(0.99),
            p999_us: at(0.999),
            max_us: at(1.0),
            write_p50_us: write_p50 as f64 / 1e3,
            flush_max_us: flushes.iter().map(|(_, nanos)| *nanos as f64 / 1e3).fold(0.0, f64::max),
            ..self
        }
    }

    /// How many writes ended in a second.
    pub(super) fn per_second(&self) -> f64 {
        self.operations as f64 / self.span_ms * 1e3
    }
}

/// The time that so large a share of `count` records does not exceed; `times` is in order, each
/// with how many records it has.
fn weighed(times: &[(u64, u64)], count: u64, share: f64) -> u64 {
    let rank = ((share * count as f64).ceil() as u64).max(1);
    let mut seen = 0;
    let reached = times.iter().find(|(_, records)| {
        seen += records;
        seen >= rank
    });
    reached.map_or(0, |(nanos, _)| *nanos)
}

/// The middle of `values`.
pub(super) fn median(values: &[f64]) -> f64 {
    samples::quantile_of(values, 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_that_share_a_write_wait_each_from_when_it_was_due() {
        let operation = |records: u32| Operation {
            end_ns: 30_000_000,
            whole_ns: 20_000_000,
            call_ns: 4_000_000,
            write_ns: 1000,
            records,
            step_ns: 5_000_000,
        };
        let mut series = Series::default();
        series.add(0.0, 100.0, &[operation(4)], &[]);
        let tick = series.ticks[0];
        assert_eq!((tick.operations, tick.p50_us, tick.max_us), (4, 10_000.0, 20_000.0));
        assert_eq!((series.calls[0].operations, series.calls[0].max_us), (1, 4000.0));
        assert!((10.0..10.4).contains(&series.figure_ms(Figure::P50).unwrap()));
        let many: u64 = operation(100_000).waits().map(|(_, count)| count).sum();
        assert_eq!(many, 100_000);
    }

    #[test]
    fn a_slice_becomes_ticks_with_the_figures_of_each() {
        let operation = |end_ms: u64, whole_us: u64| Operation {
            end_ns: end_ms * 1_000_000,
            whole_ns: whole_us * 1000,
            call_ns: whole_us * 1000,
            write_ns: 1000,
            records: 1,
            step_ns: 0,
        };
        let mut series = Series::default();
        let operations = [operation(1, 100), operation(9, 300), operation(35, 20_000)];
        series.add(500.0, 10.0, &operations, &[(5_000_000, 7_000_000)]);
        let ticks = &series.ticks;
        assert_eq!(ticks.iter().map(|tick| tick.operations).collect::<Vec<_>>(), [2, 0, 0, 1]);
        assert_eq!((ticks[0].max_us, ticks[0].mean_us, ticks[3].at_ms), (300.0, 200.0, 530.0));
        assert_eq!((ticks[0].flush_max_us, ticks[0].write_p50_us), (7000.0, 1.0));
        assert_eq!(series.operations(), 3);
        assert!((20.0..20.7).contains(&series.figure_ms(Figure::Max).unwrap()));
        assert!((7.0..7.3).contains(&series.figure_ms(Figure::FlushMax).unwrap()));
        assert_eq!(series.busy().len(), 2);
    }
}
