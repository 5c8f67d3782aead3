//! The system calls that no safe interface offers; the `unsafe` code of this crate.
//!
//! # Safety
//!
//! Each function is a thin one over a few calls to the kernel, and hands out only safe values.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use libc::c_int;
use rustix::thread::UnshareFlags;

const BLKFLSBUF: libc::c_ulong = 0x1261;

/// Gives the calling thread mounts and a table of descriptors of its own, with all that are open
/// now.
///
/// A thread that serves a disk must not hold the mounts that lie on it: if it is the last to die,
/// unmounting would wait for an answer that no thread gives. And its end of the connection must be
/// closed with it, even if other threads are still dying.
///
/// Descriptors of the caller keep their numbers in both tables, so values that own or borrow one
/// stay valid; closing it in one table leaves it open in the other.
pub(crate) fn leave_descriptors() -> io::Result<()> {
    // SAFETY: the numbers of the caller's descriptors name the same files in the new table.
    Ok(unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS | UnshareFlags::FILES) }?)
}

/// Closes all but these and the standard ones in the calling thread's table of descriptors, which
/// [`leave_descriptors`] has given it.
pub(crate) fn close_others(kept: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut kept: Vec<u32> = kept.iter().map(|kept| kept.as_raw_fd() as u32).collect();
    kept.extend([0, 1, 2]);
    kept.sort_unstable();
    let ends = kept.iter().map(|kept| kept.wrapping_sub(1)).skip(1).chain([u32::MAX]);
    for (first, last) in kept.iter().map(|kept| kept + 1).zip(ends) {
        if first <= last {
            // SAFETY: the table is this thread's alone. The owner of one of these descriptors owns
            // it in the table of the process; nothing that this thread has owns one of them.
            let result = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
            check(result as c_int)?;
        }
    }
    Ok(())
}

/// Forgets the pages that the kernel has cached of a block device, after its content was exchanged.
pub(crate) fn forget_cached(device: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: this request takes no argument.
    check(unsafe { libc::ioctl(device.as_raw_fd(), BLKFLSBUF as _) })
}

fn check(result: c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
