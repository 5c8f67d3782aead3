//! The words about the files of a text log: when to go on in the next, and what the newest is
//! called.
//!
//! Written under the prepare lock, but for `closed_before` of a log that nobody else has open;
//! read by everybody at any time.
//!
//! **If the process dies here**: a policy that is half stored is not `loaded`, and who opens the
//! log next reads it from the geometry file; a name that is half stored names nothing, and the
//! directory is listed instead.

use super::primitive::{AtomicU64, Ordering};
use super::words::{NameWords, PolicyWords};
use crate::{Lsn, Policy};

impl PolicyWords {
    /// The policy, if it has been stored since the control file was made.
    pub(crate) fn load(&self) -> Option<Policy> {
        let number = |word: &AtomicU64| word.load(Ordering::Relaxed);
        let is_loaded = self.is_loaded.load(Ordering::Acquire) != 0;
        is_loaded.then(|| Policy::from_numbers(self.numbers.each_ref().map(number)))
    }

    /// Says that what is stored may not hold any more.
    pub(crate) fn unload(&self) {
        self.is_loaded.store(0, Ordering::SeqCst);
    }

    pub(crate) fn store(&self, policy: &Policy) {
        for (word, number) in self.numbers.iter().zip(policy.to_numbers()) {
            word.store(number, Ordering::Relaxed);
        }
        self.is_loaded.store(1, Ordering::Release);
    }
}

impl NameWords {
    /// First position and time of the newest segment, where they are known.
    pub(crate) fn newest(&self) -> Option<(Lsn, u64)> {
        let first = self.first.load(Ordering::SeqCst);
        let time = self.time.load(Ordering::SeqCst);
        // Somebody may be storing the next name: its position goes to 0 first.
        let is_whole = first != 0 && self.first.load(Ordering::SeqCst) == first;
        is_whole.then(|| (Lsn::new(first), time))
    }

    /// The time of the newest name that was ever stored; 0 where none was.
    pub(crate) fn time(&self) -> u64 {
        self.time.load(Ordering::SeqCst)
    }

    pub(crate) fn store(&self, first: Lsn, time: u64) {
        self.first.store(0, Ordering::SeqCst);
        self.time.store(time, Ordering::SeqCst);
        self.first.store(first.get(), Ordering::SeqCst);
    }

    /// Forgets which segment is the newest; what comes next is not named earlier all the same.
    pub(crate) fn forget(&self) {
        self.first.store(0, Ordering::SeqCst);
    }
}
