//! A device that loses whatever it may lose.
//!
//! A write of blocks has a first and a last step. From the first on, until a write of the same
//! block has ended well, each byte of its blocks may have its old value, or any value that the
//! stage had during the write: where those differ the byte is unsure, and so it stays if the writer
//! dies or the write fails. To count on a byte is right if it is sure: then it is there after a
//! power cut at that moment, whichever blocks of which write arrived.

use super::super::commit::CommitGroup;
use super::super::model_atomics::{self, TASK_COUNT};
use super::super::primitive::{AtomicU64, Ordering};
use super::index;

/// Bytes of the log.
pub(super) const LOG_LEN: usize = 24;
/// Bytes that are written at once, or not at all.
pub(super) const BLOCK: u64 = 4;
/// A byte that may be one thing or another.
const UNSURE: u64 = u64::MAX;

#[derive(Default)]
pub(super) struct Device {
    bytes: [AtomicU64; LOG_LEN],
    /// The range that each process writes: start << 8 | end, in whole blocks.
    writes: [AtomicU64; TASK_COUNT],
    /// Number of the group whose first write fails, plus one.
    pub(super) failing: AtomicU64,
    pub(super) has_failed: AtomicU64,
}

impl Device {
    /// Writes a group from `stage`; false if that fails. `is_hopeless` says that it is known that a
    /// write has failed.
    pub(super) fn write(
        &self,
        stage: &[AtomicU64; LOG_LEN],
        group: CommitGroup,
        is_hopeless: impl Fn() -> bool,
    ) -> bool {
        let start = group.start.get() / BLOCK * BLOCK;
        let end = group.end.get().next_multiple_of(BLOCK);
        let write = &self.writes[model_atomics::me()];
        write.store(start << 8 | end, Ordering::Relaxed);
        self.check_alone(start, end);
        let is_failing = self.failing.peek() == group.number + 1;
        let is_again = is_failing && self.has_failed.peek() != 0;
        assert!(!(is_again && is_hopeless()), "a write that failed was tried again");
        for at in index(start)..index(end) {
            if self.bytes[at].peek() != stage[at].peek() {
                self.bytes[at].poke(UNSURE);
            }
        }
        write.store(0, Ordering::Relaxed);
        if is_failing && !is_again {
            self.has_failed.poke(1);
            return false;
        }
        for at in index(start)..index(end) {
            // Bytes behind the group may have changed since the first step.
            let is_settled = at < index(group.end.get());
            let value = if is_settled { stage[at].peek() } else { UNSURE };
            self.bytes[at].poke(value);
        }
        true
    }

    /// No living process writes to the blocks that the caller begins to write to.
    fn check_alone(&self, start: u64, end: u64) {
        for (task, write) in self.writes.iter().enumerate() {
            let (other_start, other_end) = (write.peek() >> 8, write.peek() & 0xff);
            let is_apart = end <= other_start || other_end <= start;
            let is_over = task == model_atomics::me() || model_atomics::is_killed(task);
            assert!(is_over || is_apart, "two writes cover the same block");
        }
    }

    /// Whether a byte is `value` whatever happens.
    pub(super) fn is_sure(&self, at: usize, value: u64) -> bool {
        self.bytes[at].peek() == value
    }
}
