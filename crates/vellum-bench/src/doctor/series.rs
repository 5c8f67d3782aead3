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
    /// How long one took, in the mean.
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
    /// From when it was due to its end.
    pub(super) whole_ns: u64,
    /// The write alone.
    pub(super) write_ns: u64,
    /// How many records shared it.
    pub(super) records: u32,
}

/// A flush by another thread: when it ended, and how long it took.
pub(super) type Flush = (u64, u64);

/// Everything measured of one program.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// In the order of time.
    pub ticks: Vec<Tick>,
    /// What came before anything was counted, in finer ticks: a small budget ends here.
    pub early: Vec<Tick>,
    /// The ends of slices, as places in `ticks`: between them other programs had their turn.
    pub(super) slice_ends: Vec<usize>,
    times: Histogram,
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
        for one in operations {
            self.times.note(one.whole_ns, one.records.into());
            self.spent.note(one.whole_ns, one.whole_ns / 1000);
        }
        flushes.iter().for_each(|(_, nanos)| self.flushes.note(*nanos, 1));
        self.ticks.extend(ticks(at_ms, tick_ms, operations, flushes));
        self.slice_ends.push(self.ticks.len());
    }

    /// Adds what is not counted.
    pub(super) fn add_early(&mut self, at_ms: f64, tick_ms: f64, operations: &[Operation]) {
        self.early.extend(ticks(at_ms, tick_ms, operations, &[]));
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
    /// Where each write follows the one before, few of them end while each takes long, so that
    /// percentiles of them do not show it.
    pub fn share_beyond(&self, limit_ms: f64) -> Option<f64> {
        self.spent.share_beyond((limit_ms * 1e6) as u64)
    }

    /// The ticks in which something ended.
    pub(super) fn busy(&self) -> Vec<&Tick> {
        self.ticks.iter().filter(|tick| tick.operations > 0).collect()
    }

    /// One figure of every busy tick.
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
            series.times.note((tick.p50_us * 1e3) as u64, tick.operations);
            let spent_us = tick.p50_us * tick.operations as f64;
            series.spent.note((tick.p50_us * 1e3) as u64, spent_us as u64);
        }
        Series { slice_ends: vec![ticks.len()], ticks, ..series }
    }
}

/// The operations of a slice that began at `at_ms`, tick by tick.
fn ticks(at_ms: f64, tick_ms: f64, operations: &[Operation], flushes: &[Flush]) -> Vec<Tick> {
    let (mut operations, mut flushes, mut ticks) = (operations, flushes, Vec::new());
    let mut end_ms = 0.0;
    while !operations.is_empty() {
        end_ms += tick_ms;
        let end_ns = (end_ms * 1e6) as u64;
        let inside = operations.partition_point(|one| one.end_ns < end_ns);
        let flushed = flushes.partition_point(|(end, _)| *end < end_ns);
        let at_ms = at_ms + end_ms - tick_ms;
        let tick = Tick { at_ms, span_ms: tick_ms, ..Tick::default() };
        ticks.push(tick.of(&operations[..inside], &flushes[..flushed]));
        (operations, flushes) = (&operations[inside..], &flushes[flushed..]);
    }
    ticks
}

impl Tick {
    fn of(self, operations: &[Operation], flushes: &[Flush]) -> Tick {
        let mut times: Vec<u64> = operations.iter().map(|one| one.whole_ns).collect();
        let mut writes: Vec<u64> = operations.iter().map(|one| one.write_ns).collect();
        times.sort_unstable();
        writes.sort_unstable();
        let at =
            |sorted: &[u64], share: f64| samples::quantile(sorted, share).unwrap_or(0) as f64 / 1e3;
        let sum: u64 = times.iter().sum();
        let records = operations.iter().map(|one| u64::from(one.records)).sum();
        Tick {
            operations: records,
            mean_us: sum as f64 / 1e3 / times.len().max(1) as f64,
            p10_us: at(&times, 0.1),
            p50_us: at(&times, 0.5),
            p90_us: at(&times, 0.9),
            p99_us: at(&times, 0.99),
            p999_us: at(&times, 0.999),
            max_us: at(&times, 1.0),
            write_p50_us: at(&writes, 0.5),
            flush_max_us: flushes.iter().map(|(_, nanos)| *nanos as f64 / 1e3).fold(0.0, f64::max),
            ..self
        }
    }

    /// How many writes ended in a second.
    pub(super) fn per_second(&self) -> f64 {
        self.operations as f64 / self.span_ms * 1e3
    }
}

/// The middle of `values`.
pub(super) fn median(values: &[f64]) -> f64 {
    samples::quantile_of(values, 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_becomes_ticks_with_the_figures_of_each() {
        let operation = |end_ms: u64, whole_us: u64| Operation {
            end_ns: end_ms * 1_000_000,
            whole_ns: whole_us * 1000,
            write_ns: 1000,
            records: 1,
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
