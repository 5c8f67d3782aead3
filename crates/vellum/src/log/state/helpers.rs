//! Threads that the program has started for a log, and that do what an append would otherwise do
//! itself and wait for the device.
//!
//! They belong to a process's place in the log: a forked child has none of them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};

use crate::Lsn;

/// The helpers of one process.
pub(crate) struct Helpers {
    threads: Mutex<Vec<Thread>>,
    is_asked: AtomicBool,
    /// Position up to which appends have asked; [`NOBODY`] where they cannot.
    asked_until: AtomicU64,
}

const NOBODY: u64 = u64::MAX;

impl Default for Helpers {
    fn default() -> Helpers {
        let asked_until = AtomicU64::new(NOBODY);
        Helpers { threads: Mutex::default(), is_asked: AtomicBool::default(), asked_until }
    }
}

impl Helpers {
    fn threads(&self) -> MutexGuard<'_, Vec<Thread>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, thread: &Thread) {
        let mut threads = self.threads();
        threads.push(thread.clone());
        self.asked_until.store(0, Ordering::Relaxed);
    }

    /// Takes the calling thread out.
    pub(crate) fn leave(&self) {
        let me = thread::current().id();
        let mut threads = self.threads();
        threads.retain(|thread| thread.id() != me);
        // The others do the postponed work of this one from now on.
        let until = if threads.is_empty() { NOBODY } else { 0 };
        self.asked_until.store(until, Ordering::Relaxed);
    }

    /// Whether there are any. A hint.
    #[inline]
    pub(crate) fn are_there(&self) -> bool {
        self.asked_until.load(Ordering::Relaxed) != NOBODY
    }

    /// Records that end up to here ask no helper: it was asked, or there is none.
    #[inline]
    pub(crate) fn asked_until(&self) -> Lsn {
        Lsn::new(self.asked_until.load(Ordering::Relaxed))
    }

    /// Notes that records which end before `until` have their space: none has to ask.
    pub(crate) fn put_off(&self, until: Lsn) {
        if self.are_there() {
            self.asked_until.fetch_max(until.get(), Ordering::Relaxed);
        }
    }

    /// Asks for help for records that end before `until`; returns whether there is a helper.
    pub(crate) fn ask(&self, until: Lsn) -> bool {
        let threads = self.threads();
        if threads.is_empty() {
            return false;
        }
        self.asked_until.store(until.get(), Ordering::Relaxed);
        self.is_asked.store(true, Ordering::Release);
        threads.iter().for_each(Thread::unpark);
        true
    }

    /// Whether help was asked for since the last helper looked: one of them gives it.
    pub(crate) fn is_asked(&self) -> bool {
        self.is_asked.swap(false, Ordering::Acquire)
    }
}
