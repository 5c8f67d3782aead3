//! Since when a process waits: a process that has waited for long stores the holder, and the time.
//!
//! The holder pays nothing for this. A note counts only for the hold that it was made of: the same
//! process may hold the same thing again a moment later.
//!
//! **If the process dies here**: half a note names no holder.

use super::primitive::Ordering;
use super::words::NoticeWords;
use crate::sys::clock;

/// One hold among all that there were: its holder, and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Holding {
    pub(crate) holder: u64,
    pub(crate) number: u64,
}

impl NoticeWords {
    /// Notes that a process waits for this hold, unless one has noted it before.
    #[cold]
    pub(crate) fn note(&self, holding: Holding) {
        if self.since(holding).is_some() {
            return;
        }
        self.holder.store(0, Ordering::SeqCst);
        self.number.store(holding.number, Ordering::SeqCst);
        self.since.store(clock::micros(), Ordering::SeqCst);
        self.holder.store(holding.holder, Ordering::SeqCst);
    }

    /// When it was noted, in microseconds of the machine's own clock.
    pub(crate) fn since(&self, holding: Holding) -> Option<u64> {
        let noted = || Holding {
            holder: self.holder.load(Ordering::SeqCst),
            number: self.number.load(Ordering::SeqCst),
        };
        let is_of_it = noted() == holding;
        let since = self.since.load(Ordering::SeqCst);
        // A process may have been noting another one.
        (is_of_it && noted() == holding).then_some(since)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_kept_for_one_hold_and_counts_for_no_other() {
        let noticed = NoticeWords::default();
        let hold = Holding { holder: 7, number: 1 };
        assert_eq!(noticed.since(hold), None);
        noticed.note(hold);
        let since = noticed.since(hold).unwrap();
        noticed.since.store(since - 5, Ordering::SeqCst);
        noticed.note(hold);
        assert_eq!(noticed.since(hold), Some(since - 5), "the first who noticed counts");
        let again = Holding { number: 2, ..hold };
        assert_eq!(noticed.since(again), None);
        noticed.note(again);
        assert!(noticed.since(again).unwrap() >= since);
        assert_eq!(noticed.since(hold), None);
    }
}
