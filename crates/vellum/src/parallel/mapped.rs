//! Into the page cache by two roads at the same time.
//!
//! The kernel locks a file for each buffered write, so of several threads one writes and the others
//! wait. Here those that would wait store through a shared mapping instead, which takes no such
//! lock. Writing is the faster road (no zeros, no page faults), so it is never left empty: whoever
//! finds it free takes it for a stretch of bytes.
//!
//! Pages are there before anything is stored into them, so that a full disk is an error and not
//! the end of the process; they are faulted in a batch at a time, small enough that the zeros which
//! the kernel put into them are still in the processor's cache when the bytes follow.

use std::os::fd::BorrowedFd;
use std::sync::{Mutex, TryLockError};

use rustix::io;

use super::ground::{Ground, Stretch};
use crate::sys;

/// What is faulted in at a time: measured best among 64 KiB to 2 MiB.
const BATCH_BYTES: u64 = 256 << 10;
/// What is written at a time while others may want to.
const TURN_BYTES: u64 = 2 << 20;

/// The ways into the page cache of a file.
#[derive(Debug)]
pub(super) struct Mapped {
    pub(super) ground: Ground,
    /// Held by the one that writes.
    road: Mutex<()>,
}

impl Mapped {
    pub(super) fn new(len: Option<u64>, is_memory: bool) -> Mapped {
        Mapped { ground: Ground::mapped(len, is_memory), road: Mutex::default() }
    }

    /// Writes `bytes` at `offset`.
    pub(super) fn write(
        &self,
        fd: BorrowedFd<'_>,
        mut offset: u64,
        mut bytes: &[u8],
    ) -> io::Result<()> {
        while !bytes.is_empty() {
            let stretch = self.ground.stretch(fd, offset)?;
            let len = self.write_some(fd, &stretch, offset, bytes)?;
            offset += len as u64;
            bytes = &bytes[len..];
        }
        Ok(())
    }

    /// Writes the beginning of `bytes` by the road that is free; returns how much that is.
    fn write_some(
        &self,
        fd: BorrowedFd<'_>,
        stretch: &Stretch,
        offset: u64,
        bytes: &[u8],
    ) -> io::Result<usize> {
        let place = offset - stretch.begin;
        let part = |unit: u64| {
            let end = ((place / unit + 1) * unit).min(stretch.len);
            &bytes[..(end - place).min(bytes.len() as u64) as usize]
        };
        let turn = self.road.try_lock();
        let now = match (&turn, &stretch.map) {
            (Err(TryLockError::WouldBlock), Some(map)) => {
                let now = part(BATCH_BYTES);
                if map.try_populate(place as usize, now.len()).is_ok() {
                    map.write(place as usize, now);
                    return Ok(now.len());
                }
                // An old kernel, or a page that cannot be had: a write tells which, and kills
                // nobody.
                now
            }
            _ => part(TURN_BYTES),
        };
        sys::file::write_all_at(fd, now, offset)?;
        Ok(now.len())
    }
}
