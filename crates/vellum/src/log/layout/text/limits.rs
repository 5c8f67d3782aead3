//! How far records go in the newest file of a text log, and how much is written ahead of them.

use crate::Lsn;
use crate::log::layout::text::TextLog;
use crate::sys::clock;

/// Zeros written ahead of the tail of a text log that is written slowly.
const WINDOW_BYTES_MIN: u64 = 16 << 10;
/// A window that is used up within this time is followed by one of twice the length.
const FAST_MICROS: u64 = 1_000;
/// One that lasts longer than this is followed by one of the least.
const SLOW_MICROS: u64 = 8_000;

impl TextLog<'_> {
    /// Up to which offset records go that start at `start`, in a text log; 0 where its segment has
    /// been left.
    #[inline]
    pub(crate) fn limit_at(self, start: Lsn) -> u64 {
        self.core.words().files.rule.room_at(start, self.core.capacity())
    }

    /// Bytes of the newest segment of a text log that records go to.
    #[inline]
    pub(crate) fn newest_room(self) -> u64 {
        self.core.words().files.rule.room(self.core.capacity())
    }

    /// Bytes of zeros to keep ahead of the tail.
    #[inline]
    pub(crate) fn window(self) -> u64 {
        let core = self.core;
        let window = core.words().files.rule.window();
        window.clamp(WINDOW_BYTES_MIN.min(core.ready.prefault_bytes), core.ready.prefault_bytes)
    }

    /// Chooses how much to write now, by how long it has lasted last time.
    pub(crate) fn adapt_window(self) {
        let files = &self.core.words().files;
        let now = clock::micros();
        let lasted = now.saturating_sub(files.names.zeroed_at(now));
        let window = match lasted {
            ..FAST_MICROS => (self.window() * 2).min(self.core.ready.prefault_bytes),
            SLOW_MICROS.. => WINDOW_BYTES_MIN.min(self.core.ready.prefault_bytes),
            _ => self.window(),
        };
        files.rule.set_window(window);
    }

    /// Whether the policy, or somebody who asked for it, has a record of `len` bytes start a file
    /// of its own at `first`, behind files with `group_bytes`. Otherwise the one before is only
    /// full, and goes on there.
    pub(crate) fn is_over(self, first: Lsn, group_bytes: u64, len: u64) -> bool {
        let words = self.core.words();
        let policy = words.files.policy.load().unwrap_or_default();
        let is_left = words.files.rule.left_end() >= first;
        is_left || policy.rotate_bytes.is_some_and(|limit| group_bytes.saturating_add(len) > limit)
    }
}
