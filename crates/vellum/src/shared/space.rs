//! Where the log begins, and up to where there is room in it.
//!
//! The words change under the prepare lock, or where no other process has the log open. Each only
//! grows while others have it open.
//!
//! **If the process dies here**: the end of the segments is raised after they are made, and lowered
//! before they are removed. `begin` is raised before files are removed.

use super::ends;
use super::primitive::Ordering;
use super::tail_word::{self, TailWord};
use super::words::Words;
use crate::Lsn;

impl Words {
    /// Oldest position still kept.
    pub(crate) fn begin(&self) -> Lsn {
        Lsn::new(self.begin.load(Ordering::SeqCst))
    }

    /// Drops everything before `begin`; returns where the log began.
    pub(crate) fn raise_begin(&self, begin: Lsn) -> Lsn {
        Lsn::new(self.begin.fetch_max(begin.get(), Ordering::SeqCst))
    }

    /// End of the last segment that exists.
    #[inline]
    pub(crate) fn allocated_end(&self) -> u64 {
        self.allocated_end.load(Ordering::Acquire)
    }

    /// Says that segments exist up to `end`, or, before the last one goes, that they do not.
    pub(crate) fn set_allocated_end(&self, end: u64) {
        self.allocated_end.store(end, Ordering::Release);
    }

    /// A hint up to where space is ready, or segments exist.
    #[inline]
    pub(crate) fn prepared_end(&self, is_ready: bool) -> u64 {
        let prepared = if is_ready { &self.ready_end } else { &self.allocated_end };
        prepared.load(Ordering::Relaxed)
    }

    /// Says that everything before `end` is ready to be stored to.
    pub(crate) fn raise_ready_end(&self, end: u64) {
        self.ready_end.fetch_max(end, Ordering::Release);
    }

    /// Takes back what was ready behind `end`, where nothing is stored. The caller is alone.
    pub(crate) fn take_back_ready(&self, end: Lsn) {
        self.ready_end.store(end.get(), Ordering::SeqCst);
    }

    /// Counts a segment that was made and named.
    pub(crate) fn count_segment(&self) {
        self.counts.segments_made.fetch_add(1, Ordering::Relaxed);
    }

    /// Segments that were made and named.
    pub(crate) fn segments_made(&self) -> u64 {
        self.counts.segments_made.load(Ordering::Relaxed)
    }

    /// Stores where a log begins and ends that was recovered or made. The caller is alone.
    pub(crate) fn set_space(&self, begin: Lsn, tail: Lsn, allocated_end: Lsn) {
        self.tail.store(TailWord::new(tail, 0).to_word(), Ordering::Relaxed);
        self.ready_end.store(tail.get(), Ordering::Relaxed);
        self.allocated_end.store(allocated_end.get(), Ordering::Relaxed);
        self.begin.store(begin.get(), Ordering::Relaxed);
    }

    /// Lets the log end at `tail`, and its segments at `allocated_end`. Nothing is in flight, and
    /// no other process uses the log.
    pub(crate) fn cut(&self, tail: Lsn, allocated_end: Lsn) {
        for slot in &self.slots {
            slot.start.store(0, Ordering::Relaxed);
            // A grant beyond the new end must not confirm a later one.
            slot.confirmed.store(0, Ordering::Relaxed);
        }
        self.files.names.forget();
        self.files.rule.forget();
        tail_word::set(self, TailWord::new(tail, 0));
        self.ready_end.store(tail.get(), Ordering::Release);
        self.set_allocated_end(allocated_end.get());
        ends::cut(&self.commits, tail, allocated_end);
        self.ship.cut(tail);
    }
}
