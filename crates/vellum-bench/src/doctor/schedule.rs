//! How the time of a run is shared: programs take turns in rounds, so that each is seen early and
//! late.

use std::time::Duration;

/// A slice is not longer than this, unless there is one program only.
const SLICE_MAX: Duration = Duration::from_secs(5);
/// At least so many turns has each program.
const ROUNDS_MIN: u32 = 4;
/// So much of the time is for writing; the rest is for making files, pauses and single calls.
const WRITING: f64 = 0.8;
/// So much of the time goes before anything is counted.
const WARM_UP: f64 = 0.1;
/// A run has about so many ticks …
const TICKS: u32 = 60;
/// … of no more than a second, and no less than this.
const TICK_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_millis(200);

/// The lengths of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Schedule {
    pub(super) rounds: u32,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_program_has_several_turns_whatever_the_time() {
        for (seconds, programs) in [(1, 1), (1, 8), (10, 1), (60, 1), (60, 8), (600, 2)] {
            let schedule = Schedule::of(Duration::from_secs(seconds), programs);
            assert!(schedule.rounds >= 4 && schedule.slice <= SLICE_MAX, "{schedule:?}");
            let writing = schedule.slice * schedule.rounds;
            let all = (writing + schedule.warm_up + schedule.pause) * programs;
            assert!(all < Duration::from_secs(seconds), "{schedule:?}");
        }
        let ten_minutes = Schedule::of(Duration::from_secs(600), 2);
        assert_eq!((ten_minutes.rounds, ten_minutes.warm_up_slices()), (42, 6));
        let minute = Schedule::of(Duration::from_secs(60), 1);
        assert_eq!((minute.tick.as_secs(), minute.rounds), (1, 9));
    }
}
