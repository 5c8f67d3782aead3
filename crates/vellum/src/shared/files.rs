//! The words about the files of a text log: when to continue in the next, and the name of the
//! newest.
//!
//! Written under the prepare lock, but for `closed_before` of a log that no other process has open;
//! read by all processes at any time.
//!
//! **If the process dies here**: a policy that is half stored has an even version, and the next
//! opener of the log reads it from the geometry file; a name that is half stored names nothing, and
//! the directory is listed instead.

use std::ops::Range;

use super::primitive::{AtomicU64, Ordering};
use super::words::{NameWords, PolicyWords, RemovedWords, RuleWords};
use crate::Lsn;
use crate::options::policy::Policy;

impl RuleWords {
    /// Bytes of a segment that records go to; `None` for all of them.
    #[inline]
    pub(crate) fn limit(&self) -> Option<u64> {
        let limit = self.limit.load(Ordering::Relaxed);
        (limit != 0).then_some(limit)
    }

    /// A hint up to which offset records go that start at `start`, of `most` at most; 0 where its
    /// segment was left.
    #[inline]
    pub(crate) fn room_at(&self, start: Lsn, most: u64) -> u64 {
        if self.is_left(start) { 0 } else { self.room(most) }
    }

    /// Up to which offset records go in the newest segment, of `most` at most.
    #[inline]
    pub(crate) fn room(&self, most: u64) -> u64 {
        self.limit().map_or(most, |limit| limit.min(most))
    }

    pub(crate) fn set_limit(&self, limit: Option<u64>) {
        self.limit.store(limit.unwrap_or(0), Ordering::SeqCst);
    }

    /// A hint whether records go behind the segment of `lsn`.
    #[inline]
    pub(crate) fn is_left(&self, lsn: Lsn) -> bool {
        lsn.get() < self.closed_before.load(Ordering::Relaxed)
    }

    /// End of the segment that was left early.
    pub(crate) fn left_end(&self) -> Lsn {
        Lsn::new(self.closed_before.load(Ordering::SeqCst))
    }

    /// Has records go behind `end`, where a segment ends.
    pub(crate) fn leave(&self, end: Lsn) {
        self.closed_before.fetch_max(end.get(), Ordering::SeqCst);
    }

    /// When to continue in a new file, and from when on that moment holds: a clock that shows less
    /// has been put back. Hints.
    #[inline]
    pub(crate) fn period(&self) -> Option<Range<u64>> {
        let rotate_at = self.rotate_at.load(Ordering::Relaxed);
        (rotate_at != 0).then(|| self.rotated_at.load(Ordering::Relaxed)..rotate_at)
    }

    /// When to continue in a new file, in seconds since 1970; `None` for never.
    pub(crate) fn rotate_at(&self) -> Option<u64> {
        let rotate_at = self.rotate_at.load(Ordering::SeqCst);
        (rotate_at != 0).then_some(rotate_at)
    }

    /// Stores the period of the file that is written; one that ends at 0 never ends.
    pub(crate) fn set_period(&self, period: Range<u64>) {
        self.rotated_at.store(period.start, Ordering::SeqCst);
        self.rotate_at.store(period.end, Ordering::SeqCst);
    }

    /// Position beyond which the next file has to be made ready; `None` where it is not known.
    #[inline]
    pub(crate) fn edge(&self) -> Option<u64> {
        let edge = self.edge.load(Ordering::Relaxed);
        (edge != 0).then_some(edge)
    }

    pub(crate) fn set_edge(&self, edge: u64) {
        self.edge.store(edge, Ordering::Relaxed);
    }

    /// Has the next append find out anew where the edge is.
    pub(crate) fn forget_edge(&self) {
        self.edge.store(0, Ordering::SeqCst);
    }

    /// Forgets which segment was left, and where the edge is. The caller is alone.
    pub(super) fn forget(&self) {
        self.closed_before.store(0, Ordering::Release);
        self.edge.store(0, Ordering::Release);
    }
}

impl PolicyWords {
    /// The policy, if it has been stored since the control file was made, and no process stores
    /// another meanwhile.
    pub(crate) fn load(&self) -> Option<Policy> {
        let version = self.version.load(Ordering::Acquire);
        let number = |word: &AtomicU64| word.load(Ordering::Acquire);
        let numbers = self.numbers.each_ref().map(number);
        // Pairs with the stores below: a number of the next policy comes with an even version.
        let is_whole = version % 2 == 1 && self.version.load(Ordering::Relaxed) == version;
        is_whole.then(|| Policy::from_numbers(numbers))
    }

    /// Marks the stored policy as possibly outdated.
    pub(crate) fn unload(&self) {
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version.wrapping_add(version % 2), Ordering::Relaxed);
    }

    pub(crate) fn store(&self, policy: &Policy) {
        self.unload();
        for (word, number) in self.numbers.iter().zip(policy.to_numbers()) {
            word.store(number, Ordering::Release);
        }
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version | 1, Ordering::Release);
    }
}

/// The name of the newest segment, and of the segment that it continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Newest {
    pub(crate) first: Lsn,
    /// In seconds since 1970.
    pub(crate) time: u64,
    /// Whether it continues the file before it, which was full.
    pub(crate) is_continuation: bool,
    /// Bytes of text in the files that it continues.
    pub(crate) group_bytes: u64,
}

impl NameWords {
    /// The newest segment, where it is known.
    pub(crate) fn newest(&self) -> Option<Newest> {
        let first = self.first.load(Ordering::SeqCst);
        let time = self.time.load(Ordering::SeqCst);
        let is_continuation = self.is_continuation.load(Ordering::SeqCst) != 0;
        let group_bytes = self.group_bytes.load(Ordering::SeqCst);
        // A process may be storing the next name: its position goes to 0 first.
        let is_whole = first != 0 && self.first.load(Ordering::SeqCst) == first;
        is_whole.then(|| Newest { first: Lsn::new(first), time, is_continuation, group_bytes })
    }

    /// The time of the newest name that was ever stored; 0 where none was.
    pub(crate) fn time(&self) -> u64 {
        self.time.load(Ordering::SeqCst)
    }

    pub(crate) fn store(&self, newest: Newest) {
        self.first.store(0, Ordering::SeqCst);
        self.time.store(newest.time, Ordering::SeqCst);
        self.is_continuation.store(newest.is_continuation.into(), Ordering::SeqCst);
        self.group_bytes.store(newest.group_bytes, Ordering::SeqCst);
        self.first.store(newest.first.get(), Ordering::SeqCst);
    }

    /// Whether the file under the unfinished name is whole and waits for its own.
    pub(crate) fn is_next_made(&self) -> bool {
        self.is_next_made.load(Ordering::SeqCst) != 0
    }

    pub(crate) fn set_next_made(&self, is_made: bool) {
        self.is_next_made.store(is_made.into(), Ordering::SeqCst);
    }

    /// Forgets which segment is the newest; the next one still gets no earlier name.
    pub(crate) fn forget(&self) {
        self.first.store(0, Ordering::SeqCst);
    }
}

/// By which rule of the policy a file was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RemovalRule {
    Bytes,
    Age,
    Files,
}

impl RemovedWords {
    /// Counts a file with `bytes` of text.
    pub(crate) fn count(&self, rule: RemovalRule, bytes: u64) {
        self.files[rule as usize].fetch_add(1, Ordering::Relaxed);
        self.bytes[rule as usize].fetch_add(bytes, Ordering::Relaxed);
    }

    /// How many files went by a rule, and the bytes of text in them.
    pub(crate) fn removed_by(&self, rule: RemovalRule) -> (u64, u64) {
        let load = |words: &[AtomicU64; 3]| words[rule as usize].load(Ordering::Relaxed);
        (load(&self.files), load(&self.bytes))
    }
}
