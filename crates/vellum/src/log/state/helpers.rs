//! Threads that the program has started for a log, and that do what an append would otherwise do
//! itself and wait for the device.
//!
//! They belong to a process's place in the log: a forked child has none of them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};

/// The helpers of one process.
#[derive(Default)]
pub(crate) struct Helpers {
    threads: Mutex<Vec<Thread>>,
    is_asked: AtomicBool,
}

impl Helpers {
    fn threads(&self) -> MutexGuard<'_, Vec<Thread>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, thread: &Thread) {
        self.threads().push(thread.clone());
    }

    /// Takes the calling thread out.
    pub(crate) fn leave(&self) {
        let me = thread::current().id();
        self.threads().retain(|thread| thread.id() != me);
    }

    /// Asks for help; returns whether there is somebody who may help.
    pub(crate) fn ask(&self) -> bool {
        let threads = self.threads();
        self.is_asked.store(true, Ordering::Release);
        threads.iter().for_each(Thread::unpark);
        !threads.is_empty()
    }

    /// Whether help was asked for since the last helper looked: one of them gives it.
    pub(crate) fn is_asked(&self) -> bool {
        self.is_asked.swap(false, Ordering::Acquire)
    }
}
