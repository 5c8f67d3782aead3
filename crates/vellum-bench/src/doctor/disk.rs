//! What belongs to the disk, and not to the program in whose turn it fell: the calls of all
//! programs as if they were those of one.

use super::program::{Figure, Program};
use super::series::{Series, Tick, median};

/// A call that takes no longer than so many times the usual is one with noise.
const NOISE: f64 = 2.0;
/// In a slow stretch a write takes so many times the usual, and so much more.
const SLOW: f64 = 2.5;
const SLOW_MIN_MS: f64 = 1.0;

/// The calls of `all`, in the order of time, each as long as one of a program would have been whose
/// usual call is in the middle of theirs.
pub(super) fn merged(all: &[&Series]) -> Series {
    let usual = |series: &&&Series| median(&series.all(|tick| tick.p50_us));
    let known: Vec<(&Series, f64)> = all.iter().map(|one| (*one, usual(&one))).collect();
    let known: Vec<(&Series, f64)> = known.into_iter().filter(|(_, usual)| *usual > 0.0).collect();
    let middle = median(&known.iter().map(|(_, usual)| *usual).collect::<Vec<f64>>());
    let (mut calls, mut early) = (Vec::new(), Vec::new());
    for (series, usual) in known {
        let scaled = |tick: &Tick| tick.as_of(usual, middle);
        calls.extend(series.calls.iter().map(scaled));
        early.extend(series.early.iter().map(scaled));
    }
    for ticks in [&mut calls, &mut early] {
        ticks.sort_by(|one: &Tick, other: &Tick| one.at_ms.total_cmp(&other.at_ms));
    }
    Series::of_calls(early, calls)
}

impl Tick {
    /// The same where a call usually takes `middle` and not `usual`. Noise grows with the time of a
    /// call, and delays from elsewhere do not.
    fn as_of(&self, usual: f64, middle: f64) -> Tick {
        let scaled = |time: f64| {
            let noise = time.min(NOISE * usual);
            noise * middle / usual + (time - noise)
        };
        Tick {
            mean_us: scaled(self.mean_us),
            p10_us: scaled(self.p10_us),
            p50_us: scaled(self.p50_us),
            p90_us: scaled(self.p90_us),
            p99_us: scaled(self.p99_us),
            p999_us: scaled(self.p999_us),
            max_us: scaled(self.max_us),
            write_p50_us: scaled(self.write_p50_us),
            ..*self
        }
    }
}

/// The share of the time in which a write of `program` takes longer than `limit_ms`, or would have
/// in the turns of `others`: the usual share of the program, and the slow stretches of all turns.
pub(super) fn slow_share(
    program: &Program,
    own: &Series,
    others: &[&Series],
    limit_ms: f64,
) -> Option<f64> {
    let own_share = own.share_beyond(limit_ms, program.pattern.rate.is_some())?;
    let usual_ms = own.figure_ms(Figure::P50)?;
    let span = |series: &Series| series.ticks.iter().map(|tick| tick.span_ms).sum::<f64>();
    let (own_span, own_slow) = (span(own), slow_span(own, usual_ms, limit_ms));
    let all = own_span + others.iter().map(|other| span(other)).sum::<f64>();
    let slow = own_slow + others.iter().map(|it| slow_span(it, usual_ms, limit_ms)).sum::<f64>();
    if others.is_empty() || own_span <= 0.0 {
        return Some(own_share);
    }
    let always = (own_share - own_slow / own_span).max(0.0);
    Some((always + slow / all).min(1.0))
}

/// For how long a write that usually takes `usual_ms` would have taken longer than `limit_ms`.
fn slow_span(other: &Series, usual_ms: f64, limit_ms: f64) -> f64 {
    let Some(others_usual) = other.figure_ms(Figure::P50) else { return 0.0 };
    let is_slow = |tick: &&Tick| {
        // A tick in which nothing ended is one stop.
        let took = if tick.operations == 0 { tick.span_ms } else { tick.p50_us / 1e3 };
        let longer = took - others_usual;
        took >= SLOW * others_usual && longer >= SLOW_MIN_MS && usual_ms + longer > limit_ms
    };
    other.ticks.iter().filter(is_slow).map(|tick| tick.span_ms).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(p50_us: f64, slow_us: f64, at: impl Fn(usize) -> f64) -> Series {
        let tick = |index: usize| {
            let p50_us = if index % 5 == 4 { slow_us } else { p50_us };
            let tick = Tick { at_ms: at(index), span_ms: 500.0, operations: 50, ..Tick::default() };
            Tick { p50_us, p90_us: p50_us, max_us: p50_us, ..tick }
        };
        Series::of_ticks((0..20).map(tick).collect())
    }

    #[test]
    fn the_calls_of_all_programs_are_one_row_in_which_none_is_slower_by_its_nature() {
        let fast = series(500.0, 600.0, |index| index as f64 * 1000.0);
        let slow = series(5000.0, 6000.0, |index| index as f64 * 1000.0 + 500.0);
        let merged = merged(&[&fast, &slow]);
        assert!(merged.calls.is_sorted_by(|one, other| one.at_ms <= other.at_ms));
        let times = merged.all(|tick| tick.p50_us);
        assert!(times.iter().all(|time| *time <= 1.3 * times[0]), "{times:?}");
        let stopped = series(500.0, 2_000_000.0, |index| index as f64);
        let merged = super::merged(&[&stopped, &slow]);
        let longest = merged.all(|tick| tick.max_us).into_iter().fold(0.0, f64::max);
        assert!((1.99e6..2.02e6).contains(&longest), "{longest}");
    }

    #[test]
    fn what_was_slow_in_the_turns_of_others_counts_and_what_they_always_take_does_not() {
        let etcd = Program::named("etcd").unwrap();
        let own = series(500.0, 500.0, |_| 0.0);
        let share = |others: &[&Series]| slow_share(&etcd, &own, others, 10.0).unwrap();
        let slow = series(30_000.0, 31_000.0, |_| 0.0);
        assert_eq!((share(&[]), share(&[&slow])), (0.0, 0.0));
        let beside = series(1000.0, 50_000.0, |_| 0.0);
        assert_eq!(share(&[&beside]), 0.1);
        let always = series(50_000.0, 50_000.0, |_| 0.0);
        assert_eq!(slow_share(&etcd, &always, &[&own], 10.0), Some(1.0), "also beside others");
        assert_eq!(share(&[&beside, &beside]), 0.4 / 3.0);
    }
}
