//! The words about the files of a text log: when to go on in the next, and what the newest is
//! called.
//!
//! Written under the prepare lock, but for `closed_before` of a log that nobody else has open;
//! read by everybody at any time.
//!
//! **If the process dies here**: a policy that is half stored has an even version, and who opens
//! the log next reads it from the geometry file; a name that is half stored names nothing, and the
//! directory is listed instead.

use super::primitive::{AtomicU64, Ordering};
use super::words::{NameWords, PolicyWords, RemovedWords};
use crate::{Lsn, Policy};

impl PolicyWords {
    /// The policy, if it has been stored since the control file was made, and nobody stores another
    /// meanwhile.
    pub(crate) fn load(&self) -> Option<Policy> {
        let version = self.version.load(Ordering::Acquire);
        let number = |word: &AtomicU64| word.load(Ordering::Acquire);
        let numbers = self.numbers.each_ref().map(number);
        // Pairs with the stores below: a number of the next policy comes with an even version.
        let is_whole = version % 2 == 1 && self.version.load(Ordering::Relaxed) == version;
        is_whole.then(|| Policy::from_numbers(numbers))
    }

    /// Says that what is stored may not hold any more.
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

/// What the newest segment is called, and what it continues.
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
        // Somebody may be storing the next name: its position goes to 0 first.
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

    /// Forgets which segment is the newest; what comes next is not named earlier all the same.
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
