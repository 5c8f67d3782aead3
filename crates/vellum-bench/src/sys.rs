//! Calls that have no safe form: counting extents, leaving the mounts of the others,
//! writing a range back, mapping a file.
//!
//! # Safety
//!
//! A room for unsafe code. Each `ioctl` hands the kernel one structure of the layout of its number,
//! which the kernel reads and writes within its length and keeps no pointer to.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};

use rustix::fs::FallocateFlags;
use rustix::thread::{UnshareFlags, unshare_unsafe};

mod map;

pub(crate) use map::{FileMap, MapPart};

/// `FALLOC_FL_WRITE_ZEROES`: the device writes zeros, and the blocks count as written.
pub(crate) const WRITE_ZEROES: FallocateFlags = FallocateFlags::from_bits_retain(0x80);

/// `FS_IOC_FIEMAP`: `_IOWR('f', 11, struct fiemap)`.
const FIEMAP: u64 = 0xc020_660b;
/// Writes what is delayed first, so that it has extents to be counted.
const FIEMAP_FLAG_SYNC: u32 = 1;

/// `_IOR('X', 31, struct fsxattr)` and `_IOW('X', 32, struct fsxattr)`.
const FS_IOC_FSGETXATTR: u64 = 0x801c_581f;
const FS_IOC_FSSETXATTR: u64 = 0x401c_5820;
/// The file has an extent size hint.
const FS_XFLAG_EXTSIZE: u32 = 0x800;

/// `struct fiemap` without room for extents: asks only how many there are.
#[repr(C)]
#[derive(Default)]
struct Fiemap {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
}

/// `struct fsxattr`.
#[repr(C)]
#[derive(Default)]
struct ExtendedAttributes {
    flags: u32,
    extent_bytes: u32,
    extent_count: u32,
    project: u32,
    cow_extent_bytes: u32,
    padding: [u8; 8],
}

const _: () = assert!(size_of::<Fiemap>() == 32);
const _: () = assert!(size_of::<ExtendedAttributes>() == 28);

/// Asks the filesystem to allocate the file, which must be empty, in pieces of so many bytes. A
/// filesystem that takes the hint without keeping it counts as one that has none.
pub(crate) fn set_extent_size_hint(file: &File, bytes: u32) -> io::Result<()> {
    let mut attributes = extended_attributes(file)?;
    attributes.flags |= FS_XFLAG_EXTSIZE;
    attributes.extent_bytes = bytes;
    // SAFETY: `attributes` is a `struct fsxattr`, which the kernel only reads.
    let result =
        unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FSSETXATTR as _, &raw const attributes) };
    checked(result)?;
    let kept = extended_attributes(file)?;
    if kept.flags & FS_XFLAG_EXTSIZE != 0 && kept.extent_bytes == bytes {
        return Ok(());
    }
    Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP))
}

fn extended_attributes(file: &File) -> io::Result<ExtendedAttributes> {
    let mut attributes = ExtendedAttributes::default();
    // SAFETY: `attributes` is a `struct fsxattr`, which the kernel fills.
    let result =
        unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FSGETXATTR as _, &raw mut attributes) };
    checked(result).map(|_| attributes)
}

/// How many extents the file has: pieces that lie in one place and are of one kind.
pub(crate) fn extents(file: &File) -> io::Result<u64> {
    let mut map = Fiemap { length: u64::MAX, flags: FIEMAP_FLAG_SYNC, ..Fiemap::default() };
    // SAFETY: `map` is a `struct fiemap`; it asks for no extents, so none is written behind it.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), FIEMAP as _, &raw mut map) };
    checked(result).map(|_| u64::from(map.mapped_extents))
}

/// Gives this thread, and the processes that it forks, mounts of their own: their mounts from now
/// on are invisible to all others, and vanish when the last of them has ended.
pub(crate) fn unshare_mounts() -> rustix::io::Result<()> {
    // SAFETY: only the table of file descriptors would be dangerous to leave. This leaves the
    // table of mounts and, with it, shares the working directory with no other thread any more.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }
}

/// `posix_fallocate`: has the file allocated up to `len`, whatever that takes.
pub(crate) fn posix_fallocate(file: &File, len: u64) -> io::Result<()> {
    let len = i64::try_from(len).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: the call takes numbers only, and the descriptor is open.
    match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, len) } {
        0 => Ok(()),
        // The result is the error itself: neither -1 nor `errno` has it.
        number => Err(io::Error::from_raw_os_error(number)),
    }
}

/// Writes a range of the file back and waits for it: `sync_file_range` with all three flags. The
/// device may keep the bytes in its cache, and how the file is laid out is not written at all.
pub(crate) fn write_back(file: &File, offset: u64, len: u64) -> io::Result<()> {
    let range = libc::off_t::try_from(offset).ok().zip(libc::off_t::try_from(len).ok());
    let (offset, len) = range.ok_or(io::ErrorKind::InvalidInput)?;
    let flags = libc::SYNC_FILE_RANGE_WAIT_BEFORE
        | libc::SYNC_FILE_RANGE_WRITE
        | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    // SAFETY: the call takes numbers only, and the descriptor is open.
    checked(unsafe { libc::sync_file_range(file.as_raw_fd(), offset, len, flags) }).map(drop)
}

/// Makes `listener` descriptor 3, the first that a service manager hands over, and has it stay open
/// in the program that this process becomes. For a child that is about to become one: the file with
/// that number before is closed.
pub(crate) fn hand_over_listener(listener: &impl AsRawFd) -> io::Result<()> {
    const FIRST: RawFd = 3;
    if listener.as_raw_fd() == FIRST {
        // SAFETY: the call takes numbers only, and the descriptor is open.
        return checked(unsafe { libc::fcntl(FIRST, libc::F_SETFD, 0) }).map(drop);
    }
    // SAFETY: the call takes numbers only. The owner of the number uses it no more in this child.
    checked(unsafe { libc::dup2(listener.as_raw_fd(), FIRST) }).map(drop)
}

/// From now on this process, and those that it forks, learn of a file that may not grow (the limit
/// of `ulimit -f`) by an error of the call, instead of being killed.
pub(crate) fn ignore_file_size_signal() {
    // SAFETY: to ignore a signal runs no code of ours; this one comes from our own writes only.
    let _ = unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allocation_that_fails_is_an_error() {
        let file = tempfile::tempfile().unwrap();
        posix_fallocate(&file, 8192).unwrap();
        assert_eq!(file.metadata().unwrap().len(), 8192);
        let error = posix_fallocate(&file, 1 << 62).unwrap_err();
        assert!(matches!(error.raw_os_error(), Some(libc::EFBIG | libc::ENOSPC)), "{error}");
    }
}
