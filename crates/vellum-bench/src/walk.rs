//! The work of a writer between two appends: it walks over memory of its own, as a program does
//! that has other work. So the next append finds nothing of the log in the caches that the walk
//! fills.

use std::hint::black_box;

use crate::process::now_ns;

/// No walk is longer: no cache that a core has to itself is.
pub(crate) const WALK_BYTES_MAX: u64 = 64 << 20;

const LINE_BYTES: usize = 64;
/// How often the clock is read for nothing, to learn what that takes.
const CLOCK_LAPS: usize = 255;

/// One line of a cache.
#[derive(Clone)]
#[repr(align(64))]
struct Line([u64; LINE_BYTES / 8]);

/// Memory to walk over.
pub(crate) struct Walk {
    lines: Vec<Line>,
}

impl Walk {
    /// A walk over so many bytes, in whole lines of the cache.
    pub(crate) fn new(bytes: u64) -> Walk {
        let count = (bytes as usize).div_ceil(LINE_BYTES);
        // Not zeros: the kernel would give one page for all of them.
        Walk { lines: vec![Line([1; LINE_BYTES / 8]); count] }
    }

    /// Reads a word of each line. It stores nothing: the append would wait for the stores.
    #[inline(never)]
    pub(crate) fn go(&self) -> u64 {
        black_box(&self.lines).iter().map(|line| line.0[0]).sum()
    }

    /// The time that two readings of the clock behind a walk take, with nothing in between: the
    /// median.
    pub(crate) fn clock_ns(&self) -> u64 {
        let mut laps = [0; CLOCK_LAPS];
        for lap in &mut laps {
            black_box(self.go());
            let begun = now_ns();
            *lap = now_ns() - begun;
        }
        laps.sort_unstable();
        laps[CLOCK_LAPS / 2]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_reads_each_line_once() {
        for (bytes, lines) in [(1, 1), (64, 1), (65, 2), (256 << 10, 4096)] {
            assert_eq!(Walk::new(bytes).go(), lines, "{bytes}");
        }
    }
}
