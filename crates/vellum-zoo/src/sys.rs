//! The system calls that no safe interface offers; the `unsafe` code of this crate.
//!
//! # Safety
//!
//! Each function is a thin one over a few calls to the kernel, and hands out only safe values.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use libc::c_int;
use rustix::thread::UnshareFlags;

const LOOP_CTL_GET_FREE: libc::c_ulong = 0x4c82;
const LOOP_CONFIGURE: libc::c_ulong = 0x4c0a;
const LOOP_GET_STATUS64: libc::c_ulong = 0x4c05;
const BLKFLSBUF: libc::c_ulong = 0x1261;
const LO_FLAGS_AUTOCLEAR: u32 = 4;
const LO_FLAGS_DIRECT_IO: u32 = 16;

/// Gives the calling thread mounts and a table of descriptors of its own, with what is open now.
///
/// A thread that serves a disk must not hold the mounts that lie on it: if it is the last to die,
/// unmounting would wait for an answer that nobody gives. And its end of the connection must be
/// closed with it, whoever else is still dying.
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

/// The number of a loop device that was free a moment ago.
pub(crate) fn free_loop_device(control: &File) -> io::Result<u32> {
    // SAFETY: this request takes no argument.
    let number = unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE as _) };
    u32::try_from(number).map_err(|_| io::Error::last_os_error())
}

/// `struct loop_info64` of the kernel; the fields nobody here reads are bytes.
#[repr(C)]
#[derive(Clone, Copy)]
struct LoopInfo {
    identity: [u8; 52],
    flags: u32,
    names_and_keys: [u8; 176],
}

/// `struct loop_config` of the kernel.
#[repr(C)]
struct LoopConfig {
    descriptor: u32,
    block_len: u32,
    info: LoopInfo,
    reserved: [u64; 8],
}

const _: () = assert!(size_of::<LoopInfo>() == 232 && size_of::<LoopConfig>() == 304);

const NO_LOOP_INFO: LoopInfo = LoopInfo { identity: [0; 52], flags: 0, names_and_keys: [0; 176] };

/// Puts a file behind a loop device; the device lets go of it when it is closed for the last time.
/// Fails if it is to be past the page cache and the file allows no direct I/O.
pub(crate) fn configure_loop_device(
    device: &File,
    file: &File,
    block_len: u32,
    is_direct: bool,
) -> io::Result<()> {
    let flags = LO_FLAGS_AUTOCLEAR | if is_direct { LO_FLAGS_DIRECT_IO } else { 0 };
    let config = LoopConfig {
        descriptor: file.as_raw_fd() as u32,
        block_len,
        info: LoopInfo { flags, ..NO_LOOP_INFO },
        reserved: [0; 8],
    };
    // SAFETY: the kernel reads one `struct loop_config`, which this is.
    check(unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE as _, &raw const config) })?;
    let mut info = NO_LOOP_INFO;
    // SAFETY: the kernel writes one `struct loop_info64`, which this is.
    check(unsafe { libc::ioctl(device.as_raw_fd(), LOOP_GET_STATUS64 as _, &raw mut info) })?;
    match info.flags & LO_FLAGS_DIRECT_IO {
        0 if is_direct => Err(io::Error::other("the loop device does not do direct I/O")),
        _ => Ok(()),
    }
}

/// Forgets what the kernel has cached of a block device, after its content was exchanged.
pub(crate) fn forget_cached(device: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: this request takes no argument.
    check(unsafe { libc::ioctl(device.as_raw_fd(), BLKFLSBUF as _) })
}

fn check(result: c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
