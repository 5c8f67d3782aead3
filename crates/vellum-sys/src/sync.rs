//! Waiting for the device.
//!
//! The success of a sync is believed only where the filesystem is in service afterwards. ext4 and
//! XFS that stop while a sync waits, by an error of the journal or by `EXT4_IOC_SHUTDOWN`, may let
//! it succeed although nothing reached the device (`docs/decisions/0037-failed-syncs.md`).

use std::os::fd::{AsFd, AsRawFd};

use rustix::fs;
use rustix::io::{self, Errno};

use crate::file::retry;
use crate::filesystem::Filesystem;

/// An attribute that no file has.
const NO_ATTRIBUTE: &str = "user.vellum.none";

/// Waits until the bytes of a file, its length and its blocks survive a power cut.
pub fn sync(fd: impl AsFd) -> io::Result<()> {
    retry(|| fs::fsync(&fd))?;
    check_in_service(fd)
}

/// Waits until the names in a directory survive a power cut.
pub fn sync_names(directory: impl AsFd) -> io::Result<()> {
    match sync(directory) {
        // Some filesystems keep nothing, and say so.
        Err(Errno::INVAL) => Ok(()),
        answer => answer,
    }
}

/// As [`sync`], without what only tells when the file was changed.
pub fn sync_data(fd: impl AsFd) -> io::Result<()> {
    retry(|| fs::fdatasync(&fd))?;
    check_in_service(fd)
}

/// As [`sync_data`] of a file that is known to be on a `filesystem`.
pub fn sync_data_on(filesystem: Filesystem, fd: impl AsFd) -> io::Result<()> {
    retry(|| fs::fdatasync(&fd))?;
    check_in_service_on(filesystem, fd)
}

pub(crate) fn check_in_service(fd: impl AsFd) -> io::Result<()> {
    Filesystem::of(&fd).map_or(Ok(()), |filesystem| check_in_service_on(filesystem, fd))
}

/// Fails where the filesystem of a file has stopped. To be asked after a write that was to survive
/// a power cut, and that has succeeded.
pub fn check_in_service_on(filesystem: Filesystem, fd: impl AsFd) -> io::Result<()> {
    use Filesystem::{Fuse, Network, Overlay, Tmpfs};
    // A server may answer so to a question that it does not know.
    if matches!(filesystem, Fuse | Network(_) | Tmpfs) {
        return Ok(());
    }
    // An overlay asks the filesystem below.
    believe_storage(retry(|| fs::fgetxattr_query(&fd, NO_ATTRIBUTE)))?;
    // An ext4 whose journal was aborted can still be read, but takes no write, not even of no
    // bytes. A descriptor for reading, or of a directory, takes none anyway (EBADF), and an overlay
    // does not pass it on: there an attribute that is not there is removed, which changes nothing.
    match retry(|| io::pwrite(&fd, &[], 0)) {
        Ok(_) if filesystem != Overlay => Ok(()),
        Ok(_) | Err(Errno::BADF) => believe_storage(retry(|| fs::fremovexattr(&fd, NO_ATTRIBUTE))),
        answer => believe_storage(answer),
    }
}

/// Only errors of the storage; any other error is about the query.
fn believe_storage<T>(answer: io::Result<T>) -> io::Result<()> {
    match answer {
        Err(errno @ (Errno::IO | Errno::ROFS)) => Err(errno),
        _ => Ok(()),
    }
}

/// Reports if the kernel could not write back a range of a file, whose pages it may have thrown
/// away since. Waits only for pages that are on their way to the device at this moment.
pub fn check_written_back(fd: impl AsFd, offset: u64, len: u64) -> io::Result<()> {
    match sync_range(fd, offset, len, libc::SYNC_FILE_RANGE_WAIT_BEFORE) {
        // A kernel, or a filter of calls, that does not let us ask says nothing of the file.
        Err(Errno::NOSYS | Errno::PERM | Errno::ACCESS) => Ok(()),
        answer => answer,
    }
}

/// Has the kernel begin to write a range of a file to the device, and does not wait; a hint. A
/// failure is returned by the next [`sync`].
pub fn begin_to_write_back(fd: impl AsFd, offset: u64, len: u64) {
    let _ = sync_range(fd, offset, len, libc::SYNC_FILE_RANGE_WRITE);
}

fn sync_range(fd: impl AsFd, offset: u64, len: u64, flags: u32) -> io::Result<()> {
    let (offset, len) = (offset as libc::off64_t, len as libc::off64_t);
    retry(|| {
        // SAFETY: the descriptor is open for the length of the borrow, and the call takes no
        // memory.
        match unsafe { libc::sync_file_range(fd.as_fd().as_raw_fd(), offset, len, flags) } {
            0 => Ok(()),
            _ => Err(crate::last_errno()),
        }
    })
}
