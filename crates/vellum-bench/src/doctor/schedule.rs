//! How the time of a run is shared: programs take turns in rounds, so that each is seen early and
//! late; and how much of it a judgement takes.

use std::time::Duration;

use super::program::{Figure, Pattern, Program};

/// A slice is not longer than this in the mean: the turns of a program are independent parts.
const SLICE_MAX: Duration = Duration::from_secs(2);
/// At least so many turns has each program.
const ROUNDS_MIN: u32 = 6;
/// So much of the time is for writing; the rest is for making files, pauses and experiments.
const WRITING: f64 = 0.62;
/// So much of the time goes before anything is counted.
const WARM_UP: f64 = 0.08;
/// A run has about so many ticks …
const TICKS: u32 = 120;
/// … of no more than a second, and no less than this.
const TICK_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_millis(200);
/// What comes and goes is not seen in less.
const TIME_MIN: Duration = Duration::from_secs(60);
/// Of three times as many writes, none of which was slow, fewer than one in a third of them are
/// (95 %); and some more for what the ends of turns leave out.
const NONE_SEEN: f64 = 3.3;
/// A program writes at least so long: one moment of 200 ms is then no more than p99 leaves out.
const WRITES_MIN: Duration = Duration::from_secs(20);

/// The lengths of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Schedule {
    pub(super) rounds: u32,
    /// In the mean of all programs: those that write rarely have longer ones.
    pub(super) slice: Duration,
    /// Of each program, once, in the beginning.
    pub(super) warm_up: Duration,
    /// Between slices, with nothing written here.
    pub(super) pause: Duration,
    pub(super) tick: Duration,
}

impl Schedule {
    /// For so many programs in `time`.
    pub(super) fn of(time: Duration, programs: u32) -> Schedule {
        let programs = programs.max(1);
        let writing = time.mul_f64(WRITING - WARM_UP) / programs;
        let rounds = (writing.as_secs_f64() / SLICE_MAX.as_secs_f64()).ceil() as u32;
        let rounds = rounds.max(ROUNDS_MIN);
        let slice = writing / rounds;
        Schedule {
            rounds,
            slice,
            warm_up: time.mul_f64(WARM_UP) / programs,
            pause: (slice / 10).min(PAUSE_MAX),
            tick: (time / TICKS).clamp(TICK_MIN, Duration::from_secs(1)),
        }
    }

    /// How many slices a warm-up takes: a bar that counts it as one tells too much time to be left.
    pub(super) fn warm_up_slices(&self) -> u64 {
        let slices = self.warm_up.as_secs_f64() / self.slice.as_secs_f64();
        (slices.round() as u64).max(1)
    }
}

impl Figure {
    /// The share of writes that are no longer, of a figure that is a percentile of writes.
    pub(super) fn quantile(self) -> Option<f64> {
        match self {
            Figure::P50 => Some(0.5),
            Figure::P99 => Some(0.99),
            Figure::P999 => Some(0.999),
            Figure::Max | Figure::FlushP99 | Figure::FlushMax => None,
        }
    }
}

impl Program {
    /// How long it has to write until its percentiles are sure, if the disk is good.
    fn writes_for(&self) -> Duration {
        let Pattern { rate, .. } = self.pattern;
        let quantiles = self.limits.iter().filter_map(|limit| limit.figure.quantile());
        let writes = quantiles.map(|quantile| NONE_SEEN / (1.0 - quantile)).fold(0.0, f64::max);
        let seconds = rate.map_or(0.0, |rate| writes / rate);
        Duration::from_secs_f64(seconds.min(3600.0)).max(WRITES_MIN)
    }
}

/// How much longer than the mean the turns of each program are.
pub(super) fn shares(programs: &[Program]) -> Vec<f64> {
    let seconds: Vec<f64> = programs.iter().map(|one| one.writes_for().as_secs_f64()).collect();
    let mean = seconds.iter().sum::<f64>() / seconds.len().max(1) as f64;
    seconds.iter().map(|seconds| seconds / mean).collect()
}

/// How long a run takes after which the verdicts on `programs` are sure, if the disk is good: whole
/// tens of seconds, a minute at least.
pub fn time_needed(programs: &[Program]) -> Duration {
    let writing: Duration = programs.iter().map(Program::writes_for).sum();
    let tens = (writing.as_secs_f64() / (WRITING - WARM_UP) / 10.0).ceil();
    Duration::from_secs(10 * tens as u64).max(TIME_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_program_has_several_turns_whatever_the_time() {
        for (seconds, programs) in [(1, 1), (1, 8), (10, 1), (60, 1), (60, 8), (600, 2)] {
            let schedule = Schedule::of(Duration::from_secs(seconds), programs);
            assert!(schedule.rounds >= 6 && schedule.slice <= SLICE_MAX, "{schedule:?}");
            let writing = schedule.slice * schedule.rounds;
            let all = (writing + schedule.warm_up + schedule.pause) * programs;
            assert!(all < Duration::from_secs(seconds), "{schedule:?}");
        }
        let ten_minutes = Schedule::of(Duration::from_secs(600), 2);
        assert_eq!((ten_minutes.rounds, ten_minutes.warm_up_slices()), (81, 12));
        let minute = Schedule::of(Duration::from_secs(60), 1);
        assert_eq!((minute.tick.as_millis(), minute.rounds), (500, 17));
    }

    #[test]
    fn a_run_is_as_long_as_its_percentiles_take() {
        let needed = |names: &[&str]| {
            let programs: Vec<Program> =
                names.iter().map(|name| Program::named(name).unwrap()).collect();
            time_needed(&programs).as_secs()
        };
        assert_eq!((needed(&["etcd"]), needed(&["etcd", "postgres"])), (60, 80));
        let custom = Program::custom(Some(1.0), 100, 10.0);
        assert_eq!(time_needed(std::slice::from_ref(&custom)).as_secs(), 620, "330 writes for p99");
        let etcd = Program::named("etcd").unwrap();
        let shares = shares(&[custom, etcd]);
        assert!(shares[0] > 10.0 * shares[1] && (shares[0] + shares[1] - 2.0).abs() < 1e-9);
    }
}
