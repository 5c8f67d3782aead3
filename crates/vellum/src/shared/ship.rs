//! How those who wait until something is shipped, and the process that ships, meet.
//!
//! Who waits raises `wanted`, and sleeps until `whole` is there. The shipper sleeps until more is
//! wanted than it has begun to ship. Both sleep on an event count of their own, and bring their own
//! barriers, so no wake-up is missed. An append looks at none of this.
//!
//! **If the process dies here**: a shipper that dies between storing `whole` and ringing leaves
//! sleepers that look again by themselves. Who waits holds nothing.

use super::event_count;
use super::primitive::Ordering;
use super::words::ShipWords;
use crate::Lsn;

impl ShipWords {
    /// End of what is shipped.
    pub(crate) fn shipped(&self) -> Lsn {
        Lsn::new(self.shipped.load(Ordering::Acquire))
    }

    /// The same, as far as it ends where a record does.
    pub(crate) fn whole(&self) -> Lsn {
        Lsn::new(self.whole.load(Ordering::Acquire))
    }

    /// Up to where somebody waits for the log to be shipped.
    pub(crate) fn wanted(&self) -> Lsn {
        Lsn::new(self.wanted.load(Ordering::Acquire))
    }

    /// Says that everything before `end` is shipped, and that a record ends at `whole`; wakes who
    /// waits for that. Only the shipper calls it.
    pub(crate) fn store(&self, end: Lsn, whole: Lsn) {
        self.shipped.store(end.get(), Ordering::Release);
        self.whole.store(whole.get(), Ordering::Release);
        self.notify();
    }

    /// Wakes everybody who waits, to look again.
    pub(crate) fn notify(&self) {
        event_count::notify(&self.shipped_count, false);
    }

    /// Says that somebody waits until everything before `end` is shipped, and wakes the shipper if
    /// it did not know.
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
