//! Whether a file has stayed in memory.
//!
//! The kernel keeps the hint how long what is written to a file will live (`F_SET_RW_HINT`, Linux
//! 4.13) in the inode in memory, and nowhere else. So the hint is gone when the inode was: after a
//! reboot, after the filesystem was unmounted, and once memory was needed for something else. A
//! file that has the hint has had its inode in memory since it was set, and its filesystem was
//! mounted all the time.
//!
//! Nothing follows from a hint that is missing: the kernel may not know hints, or not let this
//! process set one.
//!
//! # Safety
//!
//! `fcntl` reads or writes one number that lives on the caller's stack.

use std::os::fd::{AsFd, AsRawFd};

const GET_HINT: i32 = 1035;
const SET_HINT: i32 = 1036;

/// `RWH_WRITE_LIFE_SHORT`: no program sets it on a file by chance.
const MARK: u64 = 2;

/// Marks a file that is in memory now. A file that cannot be marked stays unmarked.
pub fn mark(fd: impl AsFd) {
    let mut hint = MARK;
    // SAFETY: the descriptor is open for the length of the borrow, the command reads one number,
    // and `hint` outlives the call.
    unsafe { libc::fcntl(fd.as_fd().as_raw_fd(), SET_HINT, &raw mut hint) };
}

/// Whether the file is known to have stayed in memory since it was marked.
pub fn is_marked(fd: impl AsFd) -> bool {
    let mut hint = 0;
    // SAFETY: as in `mark`; the command writes one number.
    let answer = unsafe { libc::fcntl(fd.as_fd().as_raw_fd(), GET_HINT, &raw mut hint) };
    answer == 0 && hint == MARK
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_the_files_and_not_its_opener_s() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(!is_marked(&file));
        mark(&file);
        let other = std::fs::File::open(file.path()).unwrap();
        let copy = tempfile::NamedTempFile::new().unwrap();
        std::fs::copy(file.path(), copy.path()).unwrap();
        // A kernel without hints marks nothing.
        assert_eq!((is_marked(&other), is_marked(&copy)), (is_marked(&file), false));
    }
}
