//! The lock on one byte of the file `lock`, for a right that one handle has at a time.
//!
//! **If the process dies here**: the kernel releases the lock. A forked child has no copy of it.

use std::os::fd::OwnedFd;

use rustix::fs::OFlags;
use rustix::io::{self, Errno};

use crate::Result;
use crate::error::OsResult;
use crate::files::Files;
use crate::files::names::LOCK_NAME;
use crate::sys::inherited::Kept;
use crate::sys::lock::{self, Kind};

/// The lock on a byte, by an open file of its own; released when dropped.
pub(crate) struct ByteLock {
    byte: u64,
    file: Kept,
}

impl ByteLock {
    /// Takes the lock on `byte`; `None` where another open file has it. `what` is for the error.
    pub(crate) fn take(files: &Files, byte: u64, what: &str) -> Result<Option<ByteLock>> {
        let path = files.dir.join(LOCK_NAME);
        let take = || {
            let file = Kept::open(&files.dir, &path)?;
            let fd = file.fd().ok_or(Errno::BADF)?;
            let is_mine = lock::try_lock(fd, byte, Kind::Exclusive)?;
            io::Result::Ok(is_mine.then_some(ByteLock { byte, file }))
        };
        take().or_os(what, &path)
    }

    /// Whether this process has the lock on `byte` by it. A forked child of the process that took
    /// it does not.
    pub(crate) fn is_mine(&self, byte: u64) -> bool {
        self.byte == byte && self.file.fd().is_some()
    }
}

/// The file `lock`, opened to see who has the lock on one of its bytes.
pub(crate) fn file(files: &Files) -> Option<OwnedFd> {
    files.dir.open_file(&files.dir.join(LOCK_NAME), OFlags::RDONLY).ok()
}
