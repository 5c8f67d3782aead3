//! What a disk is to the thread that answers for it.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rustix::io::Errno;

/// What a disk is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// So many bytes from an offset.
    Read(u64, usize),
    /// Bytes to an offset.
    Write(u64, &'a [u8]),
    /// Have everything on the medium.
    Flush,
}

/// A disk that a thread of this process answers for.
pub trait Served: Send {
    /// Bytes of the disk.
    fn len_bytes(&self) -> u64;

    /// What the disk has open. The thread that answers has a table of descriptors of its own, and
    /// in it nothing but these: what others open and close meanwhile is theirs.
    fn descriptors(&self) -> Vec<BorrowedFd<'_>>;

    /// Answers a request: with what was read, or with nothing.
    ///
    /// # Errors
    ///
    /// What the kernel is told.
    fn answer(&mut self, request: Request<'_>) -> Result<Vec<u8>, Errno>;

    /// When the answer to the request may go; asked before [`answer`](Served::answer). Other
    /// requests are served meanwhile.
    fn due(&mut self, request: Request<'_>) -> Option<Instant> {
        let _ = request;
        None
    }

    /// Something else to wait for: [`hear`](Served::hear) is called when it can be read.
    ///
    /// # Errors
    ///
    /// It cannot be had.
    fn ear(&self) -> io::Result<Option<OwnedFd>> {
        Ok(None)
    }

    /// Takes in what there is to hear.
    fn hear(&mut self) {}
}

pub(crate) fn lock<D>(disk: &Mutex<D>) -> MutexGuard<'_, D> {
    disk.lock().unwrap_or_else(PoisonError::into_inner)
}
