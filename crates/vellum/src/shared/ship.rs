//! How the waiters for a shipped position and the shipper meet.
//!
//! A waiter raises `wanted`, and sleeps until `whole` is there. The shipper sleeps until more is
//! wanted than it has begun to ship. Both sleep on an event count of their own, and bring their own
//! barriers, so no wake-up is missed. An append looks at none of this.
//!
//! **If the process dies here**: a shipper that dies between storing `whole` and ringing leaves
//! sleepers that look again by themselves. A waiter holds nothing.

use super::event_count;
use super::participants::Owner;
use super::primitive::Ordering;
use super::words::ShipWords;
use crate::Lsn;

impl ShipWords {
    /// End of the shipped records.
    pub(crate) fn shipped(&self) -> Lsn {
        Lsn::new(self.shipped.load(Ordering::Acquire))
    }

    /// The same, as far as it ends where a record does.
    pub(crate) fn whole(&self) -> Lsn {
        Lsn::new(self.whole.load(Ordering::Acquire))
    }

    /// The furthest position that a waiter wants shipped.
    pub(crate) fn wanted(&self) -> Lsn {
        Lsn::new(self.wanted.load(Ordering::Acquire))
    }

    /// Stores that everything before `end` is shipped, and that a record ends at `whole`; wakes the
    /// waiters. Only the shipper calls it.
    pub(crate) fn store(&self, end: Lsn, whole: Lsn) {
        self.shipped.store(end.get(), Ordering::Release);
        self.whole.store(whole.get(), Ordering::Release);
        self.notify();
    }

    /// Wakes all waiters, to check again.
    pub(crate) fn notify(&self) {
        event_count::notify(&self.shipped_count, false);
    }

    /// Stores that a process waits until everything before `end` is shipped, and wakes the shipper
    /// if it did not know.
    pub(crate) fn want(&self, end: Lsn) {
        if self.wanted.fetch_max(end.get(), Ordering::SeqCst) < end.get() {
            event_count::notify(&self.wanted_count, false);
        }
    }

    /// Takes back what is said of positions from `end` on: the log was cut there, by a process that
    /// is alone in it.
    pub(crate) fn cut(&self, end: Lsn) {
        for word in [&self.shipped, &self.whole] {
            word.fetch_min(end.get(), Ordering::AcqRel);
        }
        self.wanted.store(0, Ordering::Release);
    }
}

impl ShipWords {
    /// The shipper that was noted last; the holder of the lock counts.
    pub(crate) fn holder(&self) -> Option<Owner> {
        let word = self.holder.load(Ordering::Acquire);
        (word != 0).then(|| Owner::from_word(word))
    }

    pub(crate) fn set_holder(&self, holder: Option<Owner>) {
        self.holder.store(holder.map_or(0, Owner::to_word), Ordering::SeqCst);
    }

    /// The state of shipping, and its failure, as `log::ship::state` packs them.
    pub(crate) fn status_word(&self) -> u64 {
        self.status.load(Ordering::SeqCst)
    }

    pub(crate) fn set_status_word(&self, word: u64) {
        self.status.store(word, Ordering::SeqCst);
    }

    /// The newest gap; `None` while it is being stored.
    pub(crate) fn gap(&self) -> Option<(Lsn, Lsn)> {
        let end = self.gap_end.load(Ordering::Acquire);
        let start = self.gap_start.load(Ordering::Acquire);
        let is_settled = end != 0 && self.gap_end.load(Ordering::Acquire) == end;
        is_settled.then(|| (Lsn::new(start), Lsn::new(end)))
    }

    pub(crate) fn set_gap(&self, start: Lsn, end: Lsn) {
        self.gap_end.store(0, Ordering::SeqCst);
        self.gap_start.store(start.get(), Ordering::SeqCst);
        self.gap_end.store(end.get(), Ordering::SeqCst);
    }
}
