//! A disk, as the thread sees it that answers for it.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rustix::io::Errno;

/// A request to a disk.
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

    /// The open descriptors of the disk. The thread that answers has a table of descriptors of its
    /// own, and in it nothing but these: descriptors that others open and close meanwhile are
    /// theirs.
    fn descriptors(&self) -> Vec<BorrowedFd<'_>>;

    /// Answers a request: with the bytes that were read, or with none.
    ///
    /// # Errors
    ///
    /// The error that the kernel gets.
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

    /// Reads everything that has arrived.
    fn hear(&mut self) {}
}

pub(crate) fn lock<D>(disk: &Mutex<D>) -> MutexGuard<'_, D> {
    disk.lock().unwrap_or_else(PoisonError::into_inner)
}
