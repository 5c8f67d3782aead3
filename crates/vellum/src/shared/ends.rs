//! State that commits have reached beside the groups (`commit`): names, the user's mark, the stage,
//! and counts.
//!
//! **If the process dies here**: `named_end` is raised after names were synced, and lowered before
//! their files go. Without its identity no stage is believed.

use std::time::Duration;

use super::commit::{self, CommitGroup};
use super::primitive::Ordering;
use super::words::{CommitCountWords, CommitWords, StageWords};
use crate::Lsn;

impl CommitWords {
    /// End of the segments whose names survive a power cut; 0 where nothing was committed.
    pub(crate) fn named_end(&self) -> u64 {
        self.ends.named_end.load(Ordering::Acquire)
    }

    /// Says that names of segments up to `end` survive a power cut.
    pub(crate) fn raise_named_end(&self, end: u64) {
        self.ends.named_end.fetch_max(end, Ordering::AcqRel);
    }

    /// Says that segments from `end` on go. The caller is alone.
    pub(crate) fn lower_named_end(&self, end: u64) {
        self.ends.named_end.fetch_min(end, Ordering::AcqRel);
    }

    /// The user's own mark, or zero.
    pub(crate) fn checkpoint(&self) -> Lsn {
        Lsn::new(self.ends.checkpoint.load(Ordering::Acquire))
    }

    /// Stores the user's own mark; returns the one before.
    pub(crate) fn set_checkpoint(&self, lsn: Lsn) -> Lsn {
        Lsn::new(self.ends.checkpoint.swap(lsn.get(), Ordering::AcqRel))
    }

    /// End of the newest commit record of this opening of the log, or zero.
    pub(crate) fn record_end(&self) -> Lsn {
        Lsn::new(self.ends.record_end.load(Ordering::Acquire))
    }

    /// Puts the mark `old` back, unless another one than `new` was stored since.
    pub(crate) fn take_back_checkpoint(&self, new: Lsn, old: Lsn) {
        let (new, old) = (new.get(), old.get());
        let mark = &self.ends.checkpoint;
        let _ = mark.compare_exchange(new, old, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// End of the records that commit groups have taken.
    pub(crate) fn grouped(&self) -> Lsn {
        Lsn::new(self.ends.grouped.load(Ordering::Acquire))
    }

    /// Stores what was found of a log that was recovered or made. The caller is alone.
    pub(crate) fn set_ends(&self, durable: Lsn, checkpoint: Lsn, staged_from: Lsn) {
        self.ends.durable.store(durable.get(), Ordering::Relaxed);
        self.ends.grouped.store(durable.get(), Ordering::Relaxed);
        self.ends.checkpoint.store(checkpoint.get(), Ordering::Relaxed);
        self.stage.begin.store(staged_from.get(), Ordering::Relaxed);
    }
}

/// Lets the log end at `tail`, and its segments at `allocated_end`. No other process uses it.
pub(super) fn cut(words: &CommitWords, tail: Lsn, allocated_end: Lsn) {
    words.ends.checkpoint.fetch_min(tail.get(), Ordering::AcqRel);
    // Files that are made behind here have the names of files that are gone.
    words.lower_named_end(allocated_end.get());
    commit::reset(words, tail);
}

impl StageWords {
    /// From here on records are in the stage.
    pub(crate) fn begin(&self) -> Lsn {
        Lsn::new(self.begin.load(Ordering::SeqCst))
    }

    /// The identity of the stages, or 0 where there are none.
    pub(crate) fn id(&self) -> u64 {
        self.id.load(Ordering::Acquire)
    }

    /// Starts with empty stages at `begin`. The gate is held, and no other process has the log
    /// open.
    pub(crate) fn start(&self, begin: Lsn, id: u64) {
        self.begin.store(begin.get(), Ordering::SeqCst);
        self.id.store(id, Ordering::SeqCst);
    }

    /// Says that there are no stages. The caller is alone.
    pub(crate) fn forget(&self) {
        self.id.store(0, Ordering::SeqCst);
    }

    /// Drops the stage between `from` and `to`; false if another process has.
    pub(crate) fn retire(&self, from: Lsn, to: Lsn) -> bool {
        let (from, to) = (from.get(), to.get());
        self.begin.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }
}

/// Counts of commits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommitStat {
    /// Records, or moments, that callers wanted durable: calls that found them durable left out,
    /// and each that was submitted to a [`Committer`](crate::Committer).
    pub commits: u64,
    /// Writes or syncs of the device that this took.
    pub syncs: u64,
    /// Bytes of log that they made durable.
    pub synced_bytes: u64,
    /// How long they took: entry `i` counts those of less than 2^i microseconds that are not in
    /// an earlier one; the last counts all longer ones too.
    pub sync_micros: [u64; 24],
    /// How long they took together, in microseconds.
    pub sync_micros_sum: u64,
}

impl CommitCountWords {
    /// Counts a call that waits for a commit.
    pub(crate) fn count_commit(&self) {
        self.commits.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a sync, or a write of the same kind, of `group`.
    pub(crate) fn count_sync(&self, group: CommitGroup, time: Duration) {
        self.syncs.fetch_add(1, Ordering::Relaxed);
        self.synced_bytes.fetch_add(group.end.get() - group.start.get(), Ordering::Relaxed);
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.sync_micros_sum.fetch_add(micros, Ordering::Relaxed);
        let bucket = (u64::BITS - micros.leading_zeros()) as usize;
        let last = self.sync_micros.len() - 1;
        self.sync_micros[bucket.min(last)].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn counts(&self) -> CommitStat {
        CommitStat {
            commits: self.commits.load(Ordering::Relaxed),
            syncs: self.syncs.load(Ordering::Relaxed),
            synced_bytes: self.synced_bytes.load(Ordering::Relaxed),
            sync_micros: self.sync_micros.each_ref().map(|word| word.load(Ordering::Relaxed)),
            sync_micros_sum: self.sync_micros_sum.load(Ordering::Relaxed),
        }
    }
}
