//! The reservations that threads of this process hold.
//!
//! A commit of a record behind a reservation waits until that is published. The thread that holds
//! the reservation would wait for itself, so it gets an error.
//!
//! **If the process dies here**: these notes die with it. The slots in the control file have its
//! reservations.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use crate::Lsn;

/// The start of each reservation, and the thread that made it.
#[derive(Debug, Default)]
pub(crate) struct Reserved(Mutex<Vec<(ThreadId, Lsn)>>);

impl Reserved {
    pub(crate) fn add(&self, start: Lsn) {
        self.lock().push((thread::current().id(), start));
    }

    pub(crate) fn remove(&self, start: Lsn) {
        self.lock().retain(|(_, other)| *other != start);
    }

    /// Where the calling thread holds a reservation before `end`.
    pub(crate) fn by_this_thread_before(&self, end: Lsn) -> Option<Lsn> {
        let reserved = self.lock();
        if reserved.is_empty() {
            return None;
        }
        let me = thread::current().id();
        reserved.iter().find(|(by, start)| *by == me && *start < end).map(|(_, start)| *start)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(ThreadId, Lsn)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
