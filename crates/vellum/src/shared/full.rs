//! The losses of a full disk, and how often appends try it again that drop records without space.
//!
//! Looking for space costs hundreds of microseconds, dropping a record less than one. So a refusal
//! shuts the way for records of that length and longer, in all processes together. After a pause
//! one process tries again, with whatever record it has; if that finds space, the way is open for
//! all. It is opened at once when the log has removed files, and when a process opens the log.
//! Records that are shorter than all refused ones may still fit in the ready space, so they are
//! tried.
//!
//! Only appends that drop records check this: appends that wait, or want the error, find space as
//! soon as there is some.
//!
//! **If the process dies here**: if the process that was to try again does not come back, another
//! one tries a pause later.

use std::time::Duration;

use super::primitive::{self, Ordering};
use super::words::FullWords;
use crate::Lsn;

/// From one try to the next, in microseconds.
pub(crate) const PAUSE_MICROS: u64 = 50_000;

/// The way of a record while the disk may be full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Append it.
    Open,
    /// Append it, and tell the others if that goes well.
    Trying,
    /// Drop it.
    Shut,
}

impl FullWords {
    /// The way of a record of `len` bytes; `now` reads the machine's own clock.
    pub(crate) fn way(&self, len: u64, now: impl FnOnce() -> u64) -> Way {
        let until = self.shut_until.load(Ordering::Relaxed);
        if until == 0 || len < self.refused_len.load(Ordering::Relaxed) {
            return Way::Open;
        }
        let now = now();
        if is_shut(until, now) {
            return Way::Shut;
        }
        let next = now + PAUSE_MICROS;
        match self.shut_until.compare_exchange(until, next, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => Way::Trying,
            // Another one tries for all.
            Err(_) => Way::Shut,
        }
    }

    /// Remembers that there was no space for a record of `len` bytes.
    pub(crate) fn shut_way(&self, len: u64, now: u64) {
        self.tries.fetch_add(1, Ordering::Relaxed);
        if is_shut(self.shut_until.load(Ordering::Relaxed), now) {
            self.refused_len.fetch_min(len, Ordering::Relaxed);
        } else {
            self.refused_len.store(len, Ordering::Relaxed);
            self.shut_until.store(now + PAUSE_MICROS, Ordering::Relaxed);
        }
    }

    /// Has the next record of every process look for space.
    pub(crate) fn open_way(&self) {
        self.shut_until.store(0, Ordering::Relaxed);
    }

    /// Counts a record that is dropped.
    pub(crate) fn count_drop(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    /// Records that were dropped.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Acquire)
    }

    /// How often dropping appends have looked for space in vain.
    pub(crate) fn tries(&self) -> u64 {
        self.tries.load(Ordering::Relaxed)
    }

    /// How many dropped records the log itself reports.
    pub(crate) fn told(&self) -> u64 {
        self.told.load(Ordering::Acquire)
    }

    /// The line that is being written: its position, and the number that it will report.
    pub(crate) fn line(&self) -> Option<(Lsn, u64)> {
        let at = self.line_at.load(Ordering::Acquire);
        (at != 0).then(|| (Lsn::new(at), self.line_told.load(Ordering::Relaxed)))
    }

    /// Notes a line that is about to be written. The lock is held.
    pub(crate) fn begin_line(&self, at: Lsn, told: u64) {
        self.line_told.store(told, Ordering::Relaxed);
        self.line_at.store(at.get(), Ordering::Release);
    }

    /// Ends the line: it is there, and so many records are reported; or it is not. The lock is
    /// held.
    pub(crate) fn end_line(&self, told: Option<u64>) {
        if let Some(told) = told {
            self.told.store(told, Ordering::Release);
        }
        self.line_at.store(0, Ordering::Release);
    }

    /// How often files were removed.
    pub(crate) fn removals(&self) -> u32 {
        self.removals.load(Ordering::SeqCst)
    }

    /// Sleeps until files are removed that were not when `seen` was taken, at most for `timeout`.
    pub(crate) fn wait_for_removal(&self, seen: u32, timeout: Duration) {
        primitive::wait(&self.removals, seen, timeout);
    }

    /// Records that were dropped and that no line reports yet.
    pub(crate) fn untold(&self) -> u64 {
        self.dropped().saturating_sub(self.told())
    }

    /// Counts records that were dropped before. No process uses these words yet.
    pub(crate) fn set_untold(&self, count: u64) {
        self.dropped.store(count, Ordering::Relaxed);
    }

    /// Whether records were dropped that no line reports yet.
    #[inline]
    pub(crate) fn has_untold(&self) -> bool {
        // A concurrent change costs no more than a check under the lock.
        self.dropped.load(Ordering::Relaxed) != self.told.load(Ordering::Relaxed)
    }

    /// Wakes appends that wait for space; to be called after files were removed.
    pub(crate) fn made_space(&self) {
        self.open_way();
        self.removals.fetch_add(1, Ordering::SeqCst);
        primitive::wake_all(&self.removals);
    }
}

/// Whether it is too early for a try. A time that is further ahead than any pause is of another
/// clock, as containers may have.
fn is_shut(until: u64, now: u64) -> bool {
    (now + 1..=now + PAUSE_MICROS).contains(&until)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    /// A disk that is full for records of 100 bytes and more.
    fn try_all(words: &FullWords, records: impl IntoIterator<Item = (u64, u64)>) -> u64 {
        let mut tries = 0;
        for (now, len) in records {
            if words.way(len, || now) != Way::Shut {
                tries += 1;
                if len >= 100 {
                    words.shut_way(len, now);
                }
            }
        }
        tries
    }

    #[test]
    fn a_full_disk_is_tried_once_for_each_pause_however_many_records_come() {
        let words = FullWords::default();
        let records = (0..1_000_000).map(|now| (5 + now, 200));
        assert_eq!(try_all(&words, records), 1_000_000 / PAUSE_MICROS);
        assert_eq!(words.tries.load(Ordering::Relaxed), 1_000_000 / PAUSE_MICROS);
    }

    #[test]
    fn what_is_shorter_than_what_was_refused_is_tried() {
        let words = FullWords::default();
        let lens = [300, 300, 200, 250, 200, 150, 99, 99, 150, 100, 100, 120];
        // 300, 200, 150 and 100 are refused once each, and 99 fits twice.
        assert_eq!(try_all(&words, lens.map(|len| (7, len))), 6);
        assert_eq!(words.way(99, || 8), Way::Open);
    }

    #[test]
    fn one_tries_for_all_and_opens_the_way_for_all() {
        let words = FullWords::default();
        words.shut_way(200, 1);
        assert_eq!(words.way(200, || PAUSE_MICROS), Way::Shut);
        assert_eq!(words.way(200, || PAUSE_MICROS + 1), Way::Trying);
        assert_eq!(words.way(200, || PAUSE_MICROS + 1), Way::Shut, "another one is at it");
        assert_eq!(words.way(200, || 2 * PAUSE_MICROS + 1), Way::Trying, "and has died");
        words.open_way();
        assert_eq!(words.way(200, || 2 * PAUSE_MICROS + 2), Way::Open);
    }

    #[test]
    fn a_clock_of_another_container_does_not_shut_the_way_for_ever() {
        let words = FullWords::default();
        words.shut_way(200, 1_000_000_000);
        assert_eq!(words.way(200, || 5), Way::Trying);
        assert_eq!(words.way(200, || 6), Way::Shut);
    }
}
