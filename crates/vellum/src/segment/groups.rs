//! How long the commit groups of a log are, by which its segments are made.
//!
//! A segment that zeros were written to takes a group by one write of the device. One that only has
//! blocks costs the filesystem a note with each group, of the blocks that are written now: 50 us as
//! measured, where zeros as long as the group cost as much from 150 KiB on
//! (`docs/decisions/0033-prepared-when-published.md`).

use std::sync::atomic::{AtomicU64, Ordering};

/// Groups of this many bytes on average are long. More than where the two cost the same here: a
/// filesystem with a journal writes more for each note.
const LONG_BYTES: u64 = 512 << 10;

/// The groups since this process made its last segment.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    count_before: AtomicU64,
    bytes_before: AtomicU64,
}

impl Groups {
    /// Whether they are long. `count` and `bytes` are of all groups until now.
    pub(crate) fn are_long(&self, count: u64, bytes: u64) -> bool {
        let count = count.saturating_sub(self.count_before.load(Ordering::Relaxed));
        let bytes = bytes.saturating_sub(self.bytes_before.load(Ordering::Relaxed));
        count > 0 && bytes / count >= LONG_BYTES
    }

    /// Notes that a segment was made.
    pub(crate) fn note(&self, count: u64, bytes: u64) {
        self.count_before.store(count, Ordering::Relaxed);
        self.bytes_before.store(bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_counts_is_the_average_since_the_last_segment() {
        let groups = Groups::default();
        assert!(!groups.are_long(0, 0), "none yet");
        assert!(groups.are_long(2, 2 * LONG_BYTES));
        assert!(!groups.are_long(3, 3 * LONG_BYTES - 1));
        groups.note(1000, 1000 * 256);
        assert!(!groups.are_long(1000, 1000 * 256), "none since");
        assert!(groups.are_long(1001, 1000 * 256 + LONG_BYTES), "whatever was before");
        assert!(!groups.are_long(1, 0), "a counter that was set back");
    }
}
