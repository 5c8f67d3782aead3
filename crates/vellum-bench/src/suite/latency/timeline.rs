//! The latency of a record on a machine that never stops its writer.
//!
//! A writer that waits for the next record looks at the clock again and again, and calls nothing.
//! When it comes late to an append, the machine was the reason: it ran something else, or took long
//! to wake the writer. That is the **floor** of the record, and of all that were due meanwhile.
//!
//! ```text
//! due        |    |    |    |    |
//! append     ██   stop────██████ █      as measured: the append, and how late it began
//! replayed   ██   ██   ██   ██   █      above the floor: the same appends, when they were due
//! ```
//!
//! So each append takes as long as it took, and begins when its record is due, or when the append
//! before it has ended. A long append makes the next records late here, too. A stop *during* an
//! append counts as the append's, because the two cannot be told apart.

/// The appends of one writer, without what stopped it between them.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    /// When the last append has ended.
    free_ns: u64,
}

impl Timeline {
    /// How long after `due` the next append ends, that began at `begun` and ended at `ended` on
    /// the clock.
    pub(super) fn above_floor(&mut self, due: u64, begun: u64, ended: u64) -> u64 {
        self.free_ns = self.free_ns.max(due) + ended.saturating_sub(begun);
        self.free_ns - due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records that are due every 10; each append begins when it can, and takes as long as said.
    fn replay(appends: &[(u64, u64)]) -> (Vec<u64>, Vec<u64>) {
        let mut line = Timeline::default();
        let times = |(turn, (begun, len)): (u64, &(u64, u64))| {
            let (due, ended) = (turn * 10, begun + len);
            (ended - due, line.above_floor(due, *begun, ended))
        };
        (0..).zip(appends).map(times).unzip()
    }

    #[test]
    fn a_stop_between_two_appends_is_not_above_the_floor() {
        let (measured, above) = replay(&[(0, 2), (35, 2), (37, 2), (39, 2), (41, 2), (50, 2)]);
        assert_eq!(measured, [2, 27, 19, 11, 3, 2]);
        assert_eq!(above, [2; 6]);
    }

    #[test]
    fn a_long_append_is_above_the_floor_and_makes_the_next_ones_late() {
        let (measured, above) = replay(&[(0, 25), (25, 2), (27, 2), (30, 2)]);
        assert_eq!(measured, above);
        assert_eq!(above, [25, 17, 9, 2]);
    }

    #[test]
    fn what_is_above_the_floor_is_never_more_than_what_was_measured() {
        let (measured, above) = replay(&[(3, 12), (40, 1), (41, 30), (71, 1), (72, 1), (73, 9)]);
        assert!(above.iter().zip(&measured).all(|(above, measured)| above <= measured));
    }
}
