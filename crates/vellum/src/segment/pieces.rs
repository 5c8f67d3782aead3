//! How large the pieces are in which zeros are written ahead of the tail.
//!
//! A large `pwrite` lets the page cache hold its pages in large folios. That is the cheapest way
//! where the kernel has such memory at hand. Where it has to find it first, smaller pieces are
//! several times as fast: on a virtual machine whose host takes free memory back, 256 KiB reached
//! 6.4 GB/s and 1 MiB 1.2 to 1.6. Which of them holds depends on the machine and on the moment. So
//! each process times its own writes, and now and then tries the sizes that it does not use.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// The sizes, the one that is preferred first.
const SIZES: [u64; 3] = [1 << 20, 256 << 10, 64 << 10];
/// One window of so many is written in another size than the best.
const TRY_EVERY: u32 = 16;
/// Shorter writes tell nothing.
const TIMED_BYTES_MIN: u64 = 256 << 10;
/// So many nanoseconds for a mebibyte are long for a reader that waits for the first of its
/// records.
const SLOW_NANOS: u64 = 600_000;
/// The size of their windows then.
const SLOW_WINDOW_BYTES: u64 = 256 << 10;

/// The times of the writes of one log, by size.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    windows: AtomicU32,
    /// Nanoseconds for a mebibyte, smoothed; 0 is unknown.
    costs: [AtomicU64; SIZES.len()],
}

/// A choice for one window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice(usize);

impl Choice {
    pub(crate) fn bytes(self) -> u64 {
        SIZES[self.0]
    }
}

impl Pieces {
    /// The size for the next window, of so many bytes.
    pub(crate) fn choose(&self, bytes: u64) -> Choice {
        if bytes < TIMED_BYTES_MIN {
            return Choice(self.best());
        }
        let window = self.windows.fetch_add(1, Ordering::Relaxed);
        let is_unknown = |size: &usize| self.costs[*size].load(Ordering::Relaxed) == 0;
        if let Some(unknown) = (0..SIZES.len()).find(is_unknown) {
            return Choice(unknown);
        }
        let turn = (window / TRY_EVERY) as usize % SIZES.len();
        Choice(if window % TRY_EVERY == TRY_EVERY - 1 { turn } else { self.best() })
    }

    /// How much to make ready at the most before others get at it: as much as they like, unless
    /// that takes long.
    pub(crate) fn window_max(&self) -> u64 {
        let cost = self.costs[self.best()].load(Ordering::Relaxed);
        if cost > SLOW_NANOS { SLOW_WINDOW_BYTES } else { u64::MAX }
    }

    /// Notes what a window took.
    pub(crate) fn note(&self, choice: Choice, bytes: u64, time: Duration) {
        if bytes < TIMED_BYTES_MIN {
            return;
        }
        let sample = (time.as_nanos() as u64).saturating_mul(1 << 20) / bytes;
        let cost = &self.costs[choice.0];
        let known = cost.load(Ordering::Relaxed);
        let smoothed = match known {
            0 => sample,
            // One write that had to wait for the device counts as two, not as a thousand.
            _ => (3 * known + sample.min(2 * known)) / 4,
        };
        cost.store(smoothed.max(1), Ordering::Relaxed);
    }

    /// The largest that no smaller one beats by a quarter.
    fn best(&self) -> usize {
        let cost = |index: usize| self.costs[index].load(Ordering::Relaxed);
        (1..SIZES.len()).fold(0, |best, other| {
            let is_better = cost(other) != 0 && cost(other) * 5 < cost(best) * 4;
            if is_better { other } else { best }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sizes of the next windows where a mebibyte takes so long in each of them.
    fn sizes(pieces: &Pieces, micros: [u64; 3], windows: usize) -> Vec<usize> {
        let one = |_| {
            let choice = pieces.choose(1 << 20);
            pieces.note(choice, 1 << 20, Duration::from_micros(micros[choice.0]));
            choice.0
        };
        (0..windows).map(one).collect()
    }

    fn most_of(sizes: &[usize]) -> usize {
        let count = |size: &usize| sizes.iter().filter(|other| *other == size).count();
        *sizes.iter().max_by_key(|size| count(size)).unwrap()
    }

    #[test]
    fn the_fastest_size_is_found_and_left_when_it_is_no_longer() {
        let pieces = Pieces::default();
        sizes(&pieces, [800, 200, 190], 64);
        assert_eq!(most_of(&sizes(&pieces, [800, 200, 190], 64)), 1, "64 KiB is hardly better");
        sizes(&pieces, [100, 400, 400], 256);
        assert_eq!(most_of(&sizes(&pieces, [100, 400, 400], 64)), 0);
        sizes(&pieces, [900, 400, 100], 256);
        assert_eq!(most_of(&sizes(&pieces, [900, 400, 100], 64)), 2);
    }

    #[test]
    fn a_single_slow_write_changes_little() {
        let pieces = Pieces::default();
        sizes(&pieces, [100, 100, 100], 64);
        pieces.note(Choice(0), 1 << 20, Duration::from_secs(1));
        assert_eq!(most_of(&sizes(&pieces, [100, 100, 100], 32)), 0);
    }

    #[test]
    fn windows_are_short_while_all_sizes_are_slow() {
        let pieces = Pieces::default();
        assert_eq!(pieces.window_max(), u64::MAX, "nothing is known");
        sizes(&pieces, [2000, 200, 2000], 64);
        assert_eq!(pieces.window_max(), u64::MAX, "one is fast");
        sizes(&pieces, [2000, 2000, 2000], 256);
        assert_eq!(pieces.window_max(), SLOW_WINDOW_BYTES);
        let short = |_| {
            let choice = pieces.choose(SLOW_WINDOW_BYTES);
            pieces.note(choice, SLOW_WINDOW_BYTES, Duration::from_micros(20));
        };
        (0..256).for_each(short);
        assert_eq!(pieces.window_max(), u64::MAX, "short windows tell that it is over");
    }

    #[test]
    fn short_windows_are_not_timed() {
        let pieces = Pieces::default();
        pieces.note(Choice(2), 4096, Duration::from_nanos(1));
        assert_eq!(pieces.best(), 0);
    }
}
