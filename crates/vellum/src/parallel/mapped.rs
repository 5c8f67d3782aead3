//! Stores through a shared mapping: threads that fault pages in take no turns.
//!
//! The pages are there before anything is stored, so that a full disk is an error and not the end
//! of the process; they are faulted in a batch at a time, small enough that the zeros which the
//! kernel put into them are still in the processor's cache when the bytes follow.

use std::os::fd::BorrowedFd;

use rustix::io;

use super::ground::Ground;
use crate::sys;

/// What is faulted in at a time: measured best among 64 KiB to 2 MiB.
const BATCH_BYTES: u64 = 256 << 10;

/// Writes `bytes` at `offset`.
pub(super) fn write(
    ground: &Ground,
    fd: BorrowedFd<'_>,
    mut offset: u64,
    mut bytes: &[u8],
) -> io::Result<()> {
    while !bytes.is_empty() {
        let stretch = ground.stretch(fd, offset)?;
        let Some(map) = &stretch.map else {
            return sys::file::write_all_at(fd, bytes, offset);
        };
        let place = offset - stretch.begin;
        let batch_end = (place / BATCH_BYTES + 1) * BATCH_BYTES;
        let len = (batch_end.min(map.len() as u64) - place).min(bytes.len() as u64) as usize;
        let (now, rest) = bytes.split_at(len);
        match map.try_populate(place as usize, len) {
            Ok(()) => map.write(place as usize, now),
            // An old kernel, or a page that cannot be had: a write tells which, and kills nobody.
            Err(_) => sys::file::write_all_at(fd, now, offset)?,
        }
        offset += len as u64;
        bytes = rest;
    }
    Ok(())
}
