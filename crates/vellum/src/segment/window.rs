//! How much space is made ready at a time: a window.
//!
//! An append that makes space ready is late by about 0.25 ns a byte. Long windows cost least in
//! all, and short ones delay no append. So a window has the bytes that the log takes in a
//! millisecond, between a floor and a ceiling. Each process measures that by itself: records of all
//! processes move the tail.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::Lsn;
use crate::sys::clock;

/// How long a window lasts, in microseconds.
const LASTS_MICROS: u64 = 1_000;
/// The floor: shorter ones cost more than they save.
const BYTES_MIN: u64 = 16 << 10;
/// A window is at most so many times as long as the one before.
const GROWTH_MAX: u64 = 4;

/// The windows of one process.
#[derive(Debug)]
pub(crate) struct Window {
    chosen: AtomicU64,
    most: u64,
    /// Where the tail was when it was looked at last, and when, in microseconds; 0 is never.
    seen_tail: AtomicU64,
    seen_at: AtomicU64,
}

impl Window {
    /// Windows of up to `most` bytes, the first as short as any.
    pub(crate) fn new(most: u64) -> Window {
        Window {
            chosen: BYTES_MIN.min(most).into(),
            most,
            seen_tail: AtomicU64::default(),
            seen_at: AtomicU64::default(),
        }
    }

    /// Bytes of a window.
    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        self.chosen.load(Ordering::Relaxed)
    }

    /// Bytes of the longest window.
    #[inline]
    pub(crate) fn most(&self) -> u64 {
        self.most
    }

    /// Looks how fast the log grows, of which the tail is at `tail` now.
    pub(crate) fn adapt(&self, tail: Lsn) {
        self.adapt_at(tail.get(), clock::micros().max(1));
    }

    fn adapt_at(&self, tail: u64, now: u64) {
        let (bytes, time) = (self.bytes(), self.seen_at.load(Ordering::Relaxed));
        let used = tail.saturating_sub(self.seen_tail.load(Ordering::Relaxed));
        let lasted = now.saturating_sub(time);
        if time != 0 && used < bytes / 2 && lasted < LASTS_MICROS {
            // Too little to tell a pace by.
            return;
        }
        self.seen_tail.store(tail, Ordering::Relaxed);
        self.seen_at.store(now, Ordering::Relaxed);
        if time == 0 {
            return;
        }
        let wanted = used.saturating_mul(LASTS_MICROS) / lasted.max(1);
        let next = wanted.clamp(BYTES_MIN, (bytes * GROWTH_MAX).max(BYTES_MIN));
        self.chosen.store(next.next_power_of_two().min(self.most), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// The lengths of windows of a log that takes so many bytes in a microsecond, beginning at the
    /// time of `clock`; each is looked at when half of it is left.
    fn lengths(window: &Window, clock: &mut (u64, u64), pace: f64, count: usize) -> Vec<u64> {
        let (tail, now) = clock;
        let one = |_| {
            let used = window.bytes();
            (*tail, *now) = (*tail + used, *now + (used as f64 / pace) as u64);
            window.adapt_at(*tail, *now);
            window.bytes()
        };
        (0..count).map(one).collect()
    }

    #[test]
    fn a_window_lasts_about_a_millisecond_within_its_bounds() {
        let (window, mut clock) = (Window::new(MIB), (0, 1));
        for (pace, bytes) in
            [(0.1, BYTES_MIN), (5.0, BYTES_MIN), (100.0, 128 << 10), (300.0, 512 << 10), (2e3, MIB)]
        {
            let last = *lengths(&window, &mut clock, pace, 8).last().unwrap();
            assert_eq!(last, bytes, "{pace} bytes a microsecond");
        }
        assert_eq!(lengths(&window, &mut clock, 1.0, 1), [BYTES_MIN], "a log that becomes slow");
    }

    #[test]
    fn a_fast_log_has_long_windows_soon() {
        let (window, mut clock) = (Window::new(MIB), (0, 1));
        let lengths = lengths(&window, &mut clock, 2e3, 5);
        assert_eq!(
            lengths,
            [BYTES_MIN, 64 << 10, 256 << 10, MIB, MIB],
            "the first one tells nothing"
        );
    }

    #[test]
    fn a_few_records_tell_no_pace() {
        let (window, mut clock) = (Window::new(MIB), (0, 1));
        lengths(&window, &mut clock, 2e3, 5);
        let (mut tail, mut now) = clock;
        for _ in 0..100 {
            (tail, now) = (tail + 48, now + 1);
            window.adapt_at(tail, now);
            assert_eq!(window.bytes(), MIB, "another process has just looked");
        }
    }

    #[test]
    fn bounds_that_a_program_asks_for_are_kept() {
        for most in [4096, 12 << 10, 3 * MIB] {
            let (window, mut clock) = (Window::new(most), (0, 1));
            assert!(lengths(&window, &mut clock, 1e4, 9).iter().all(|bytes| *bytes <= most));
            assert_eq!(window.bytes(), most);
            assert!(lengths(&window, &mut clock, 0.1, 2).ends_with(&[BYTES_MIN.min(most)]));
        }
    }
}
