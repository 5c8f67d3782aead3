//! Slowing down before the kernel does.
//!
//! Appends that last longer than the device can follow fill memory with pages that wait to be
//! written. From half-way between its two limits on, the kernel stops a process that makes more of
//! them, for 10 to 200 ms at a time. Here that is the process that makes space ready, and all
//! others wait for it. So a process that has made space ready pauses often and briefly when the
//! kernel is about to begin, once it holds nothing that others wait for.
//!
//! The amount of waiting memory in the whole machine decides. While there is room, no process
//! pauses.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::sys::memory::Dirty;

/// The time of a mebibyte when the kernel is just about to slow writers down.
const COST_MAX: Duration = Duration::from_millis(32);
/// Shorter pauses are gathered.
const PAUSE_MIN: Duration = Duration::from_millis(2);
/// Longer ones are cut: the kernel is left the rest.
const PAUSE_MAX: Duration = Duration::from_millis(8);
/// Memory is not looked at more often than this.
const LOOK_BYTES_MIN: u64 = 1 << 20;
/// A process that makes less ready than this never looks.
const FIRST_LOOK_BYTES: u64 = 16 << 20;

/// How this process slows down.
#[derive(Debug)]
pub(crate) struct Pace {
    /// Bytes that may be made dirty before memory is looked at again.
    unseen: AtomicU64,
    /// Nanoseconds for a mebibyte, by the last look.
    cost: AtomicU64,
    /// Nanoseconds that have not been paused yet.
    debt: AtomicU64,
}

impl Default for Pace {
    fn default() -> Pace {
        let unseen = AtomicU64::new(FIRST_LOOK_BYTES);
        Pace { unseen, cost: AtomicU64::default(), debt: AtomicU64::default() }
    }
}

impl Pace {
    /// So many bytes were made dirty.
    ///
    /// By one thread at a time: space is made ready under a lock.
    pub(crate) fn spend(&self, bytes: u64) {
        self.spend_by(bytes, || Dirty::read().ok().flatten());
    }

    fn spend_by(&self, bytes: u64, look: impl Fn() -> Option<Dirty>) {
        let unseen = self.unseen.load(Ordering::Relaxed);
        if unseen > bytes {
            self.unseen.store(unseen - bytes, Ordering::Relaxed);
        } else {
            self.note(look());
        }
        let cost = self.cost.load(Ordering::Relaxed).saturating_mul(bytes) >> 20;
        let debt = self.debt.load(Ordering::Relaxed).saturating_add(cost);
        self.debt.store(debt, Ordering::Relaxed);
    }

    /// How long to pause now; none while that would be too short. Under the same lock.
    pub(crate) fn due(&self) -> Duration {
        let debt = Duration::from_nanos(self.debt.load(Ordering::Relaxed));
        if debt < PAUSE_MIN {
            return Duration::ZERO;
        }
        self.debt.store(0, Ordering::Relaxed);
        debt.min(PAUSE_MAX)
    }

    fn note(&self, dirty: Option<Dirty>) {
        // Where the machine does not tell, the kernel is left to it.
        let unseen = dirty.map_or(u64::MAX, |dirty| {
            let left = dirty.slowed_from().saturating_sub(dirty.bytes);
            // Others fill memory too.
            (left / 8).max(LOOK_BYTES_MIN)
        });
        self.unseen.store(unseen, Ordering::Relaxed);
        let cost = dirty.as_ref().map_or(Duration::ZERO, cost);
        self.cost.store(cost.as_nanos() as u64, Ordering::Relaxed);
    }
}

/// The pause for a mebibyte: none until half-way between where the kernel begins to write and where
/// it begins to slow down, and then more and more.
fn cost(dirty: &Dirty) -> Duration {
    let end = dirty.slowed_from();
    let begin = u64::midpoint(dirty.background, end);
    let over = dirty.bytes.saturating_sub(begin).min(end.saturating_sub(begin)) as f64;
    let share = over / (end.saturating_sub(begin).max(1)) as f64;
    COST_MAX.mul_f64(share * share * share)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const GIB: u64 = 1 << 30;

    /// Pauses of so many windows of `bytes`, and how often memory was looked at, while `dirty` of a
    /// machine wait that slows down from 3 GiB on.
    fn pauses(dirty: Option<u64>, windows: u64, bytes: u64) -> (Vec<Duration>, u64) {
        let (pace, looks) = (Pace { unseen: 0.into(), ..Pace::default() }, Cell::new(0));
        let look = || {
            looks.set(looks.get() + 1);
            dirty.map(|bytes| Dirty { bytes, background: 2 * GIB, limit: 4 * GIB })
        };
        let window = |_| {
            pace.spend_by(bytes, look);
            Some(pace.due()).filter(|pause| !pause.is_zero())
        };
        let pauses = (0..windows).filter_map(window).collect();
        (pauses, looks.get())
    }

    #[test]
    fn nobody_pauses_before_the_kernel_has_much_to_write() {
        for dirty in [0, GIB, 2 * GIB, 5 * GIB / 2] {
            let (pauses, looks) = pauses(Some(dirty), 1024, 1 << 20);
            assert!(pauses.is_empty(), "{dirty}: {pauses:?}");
            assert!(looks <= 17, "{dirty}: {looks}");
        }
    }

    #[test]
    fn pauses_are_short_and_grow_until_the_kernel_begins() {
        let sum = |dirty| pauses(Some(dirty), 1024, 1 << 20).0.iter().sum::<Duration>();
        let sums: Vec<_> = (0..=8).map(|step| sum(5 * GIB / 2 + step * (GIB / 16))).collect();
        assert!(sums.is_sorted() && sums[0] < sums[4] && sums[4] < sums[8], "{sums:?}");
        assert_eq!(sums[8], 1024 * PAUSE_MAX);
        assert_eq!(sum(9 * GIB), sums[8], "what is more is left to the kernel");
        for dirty in [2900 << 20, 3 * GIB] {
            let (pauses, _) = pauses(Some(dirty), 64, 1 << 20);
            assert!(pauses.iter().all(|pause| (PAUSE_MIN..=PAUSE_MAX).contains(pause)));
        }
    }

    #[test]
    fn short_windows_gather_one_pause() {
        let (pauses, looks) = pauses(Some(3 * GIB), 64, 16 << 10);
        assert_eq!(pauses.iter().sum::<Duration>(), COST_MAX);
        assert!(pauses.len() <= 16 && looks <= 2, "{pauses:?}, {looks}");
    }

    #[test]
    fn where_the_machine_does_not_tell_nobody_pauses_and_nobody_asks_again() {
        assert_eq!(pauses(None, 1024, 1 << 30), (Vec::new(), 1));
    }

    #[test]
    fn who_makes_little_ready_does_not_look() {
        let pace = Pace::default();
        (0..15).for_each(|_| pace.spend_by(1 << 20, || unreachable!("nothing to look for")));
        assert_eq!(pace.due(), Duration::ZERO);
    }

    #[test]
    fn limits_without_sense_cost_nothing_but_time() {
        let dirty = |bytes, background, limit| Dirty { bytes, background, limit };
        for dirty in [dirty(0, 0, 0), dirty(7, 0, 0), dirty(u64::MAX, u64::MAX, 0)] {
            assert!(cost(&dirty) <= COST_MAX, "{dirty:?}");
        }
    }
}
