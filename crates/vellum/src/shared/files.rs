//! The words about the files of a text log: when to go on in the next, and what the newest is
//! called.
//!
//! Written under the prepare lock, but for `closed_before` of a log that nobody else has open;
//! read by everybody at any time.
//!
//! **If the process dies here**: a policy that is half stored is not `loaded`, and who opens the
//! log next reads it from the geometry file; a name that is half stored names nothing, and the
//! directory is listed instead.

use std::time::Duration;

use super::primitive::Ordering;
use super::words::{NameWords, PolicyWords};
use crate::{Lsn, Policy};

/// Stands for "no limit".
const NONE: u64 = u64::MAX;

impl PolicyWords {
    /// The policy, if it has been stored since the control file was made.
    pub(crate) fn load(&self) -> Option<Policy> {
        let limit = |word: u64| Some(word).filter(|limit| *limit != NONE);
        let span = |word: u64| limit(word).map(Duration::from_secs);
        (self.is_loaded.load(Ordering::Acquire) != 0).then(|| Policy {
            rotate_bytes: limit(self.rotate_bytes.load(Ordering::Relaxed)),
            rotate_every: span(self.rotate_every.load(Ordering::Relaxed)),
            rotate_offset: Duration::from_secs(self.rotate_offset.load(Ordering::Relaxed)),
            retain_bytes: limit(self.retain_bytes.load(Ordering::Relaxed)),
            retain_age: span(self.retain_age.load(Ordering::Relaxed)),
            retain_files: limit(self.retain_files.load(Ordering::Relaxed)),
            compresses: self.compresses.load(Ordering::Relaxed) != 0,
        })
    }

    /// Says that what is stored may not hold any more.
    pub(crate) fn unload(&self) {
        self.is_loaded.store(0, Ordering::SeqCst);
    }

    pub(crate) fn store(&self, policy: &Policy) {
        let span = |span: Option<Duration>| span.map_or(NONE, |span| span.as_secs());
        self.rotate_bytes.store(policy.rotate_bytes.unwrap_or(NONE), Ordering::Relaxed);
        self.rotate_every.store(span(policy.rotate_every), Ordering::Relaxed);
        self.rotate_offset.store(policy.rotate_offset.as_secs(), Ordering::Relaxed);
        self.retain_bytes.store(policy.retain_bytes.unwrap_or(NONE), Ordering::Relaxed);
        self.retain_age.store(span(policy.retain_age), Ordering::Relaxed);
        self.retain_files.store(policy.retain_files.unwrap_or(NONE), Ordering::Relaxed);
        self.compresses.store(policy.compresses.into(), Ordering::Relaxed);
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
