//! Files that stay open for long, in a program that may close their descriptors.
//!
//! Programs close all descriptors at once (`closefrom`, `os.closerange`), and the kernel gives the
//! numbers to the next files. A write by such a number would go into a file of the program, and
//! closing it would close that. So a [`KeptFile`] has a number that few programs come to, and is
//! compared with the file that it was before it is trusted for long, and before it is closed.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};

use rustix::io::{self, Errno};

use crate::file::identity_without_times as identity;

/// The lowest number of a kept file, where the limit of the process allows it. A program gets the
/// lowest free numbers, and rarely has so many files open.
const FAR: RawFd = 512;

/// A descriptor with a number that few programs come to, or the same one where there is none.
pub fn far(fd: OwnedFd) -> OwnedFd {
    io::fcntl_dupfd_cloexec(&fd, FAR).unwrap_or(fd)
}

/// An open file, and which one it is.
#[derive(Debug)]
pub struct KeptFile {
    /// `None` only while this is dropped.
    fd: Option<OwnedFd>,
    /// Device and inode; `None` where the filesystem did not tell.
    identity: Option<(u64, u64)>,
}

impl KeptFile {
    /// Keeps an open file, by another number.
    pub fn new(fd: OwnedFd) -> KeptFile {
        let identity = identity(&fd).ok();
        KeptFile { fd: Some(far(fd)), identity }
    }

    /// The same, of a file whose device and inode are known.
    pub fn known(fd: OwnedFd, identity: (u64, u64)) -> KeptFile {
        KeptFile { fd: Some(far(fd)), identity: Some(identity) }
    }

    /// [`BADF`](Errno::BADF) where the descriptor is not this file any more. One system call.
    pub fn check(&self) -> io::Result<()> {
        let Some(known) = self.identity else { return Ok(()) };
        if identity(self)? == known { Ok(()) } else { Err(Errno::BADF) }
    }
}

impl AsFd for KeptFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_ref().expect("kept until this is dropped").as_fd()
    }
}

impl Drop for KeptFile {
    fn drop(&mut self) {
        // A filesystem that has stopped may not say which file it is (XFS: EIO).
        if self.check() == Err(Errno::BADF) {
            // A file of the program by now.
            std::mem::forget(self.fd.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    fn open() -> OwnedFd {
        tempfile::tempfile().unwrap().into()
    }

    #[test]
    fn a_kept_file_has_a_number_that_few_programs_come_to() {
        assert!(KeptFile::new(open()).as_fd().as_raw_fd() >= FAR);
    }

    #[test]
    fn a_file_in_its_place_is_noticed_and_stays_open() {
        let (mut kept, other) = (KeptFile::new(open()), open());
        kept.check().unwrap();
        // The number gets another file, as in a program that closes all.
        io::dup2(&other, kept.fd.as_mut().unwrap()).unwrap();
        assert_eq!(kept.check(), Err(Errno::BADF));
        let number = kept.as_fd().as_raw_fd();
        drop(kept);
        assert!(std::fs::exists(format!("/proc/self/fd/{number}")).unwrap(), "it was closed");
    }
}
