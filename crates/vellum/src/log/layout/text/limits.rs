//! How far records go in the newest file of a text log.

use crate::Lsn;
use crate::log::layout::text::TextLog;
use crate::shared::tail_word;

impl TextLog<'_> {
    /// Up to which offset records go that start at `start`, in a text log; 0 where its segment has
    /// been left.
    #[inline]
    pub(crate) fn limit_at(self, start: Lsn) -> u64 {
        self.core.words().files.rule.room_at(start, self.core.files.capacity())
    }

    /// Bytes of the newest segment of a text log that records go to.
    #[inline]
    pub(crate) fn newest_room(self) -> u64 {
        self.core.words().files.rule.room(self.core.files.capacity())
    }

    /// Up to where records go in the segment that is being written.
    pub(crate) fn newest_end(self) -> u64 {
        let tail = tail_word::tail(self.core.words());
        self.core.files.segment_of(tail).get() + self.limit_at(tail)
    }

    /// Whether the policy, or a call of `rotate`, has a record of `len` bytes start a file of its
    /// own at `first`, behind files with `group_bytes`. Otherwise the one before is only full, and
    /// continues there.
    pub(crate) fn is_over(self, first: Lsn, group_bytes: u64, len: u64) -> bool {
        let words = self.core.words();
        let policy = words.files.policy.load().unwrap_or_default();
        let is_left = words.files.rule.left_end() >= first;
        is_left || policy.rotate_bytes.is_some_and(|limit| group_bytes.saturating_add(len) > limit)
    }
}
