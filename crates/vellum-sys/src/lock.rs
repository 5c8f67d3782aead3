//! Locks on single bytes of a file that the kernel releases when their holder dies.
//!
//! Open-file-description locks, which rustix does not offer. They belong to the open file: closing
//! another descriptor of the same file in the same process does not drop them (the trap of POSIX
//! locks), but a forked child shares them until it closes its copy. That is the safe direction: a
//! holder may be thought alive for too long, never dead too early.
//!
//! # Safety
//!
//! `fcntl` reads and writes one `flock` structure that lives on the caller's stack.

use std::fs;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;

use rustix::io::{self, Errno};

use crate::file::{read_text, retry};

/// Which lock to take on a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Held by any number at the same time.
    Shared,
    /// Held by one process, and by no other in either kind.
    Exclusive,
}

/// Takes the lock on byte `offset`, waiting for as long as another holder lives.
pub fn lock(fd: impl AsFd, offset: u64, kind: Kind) -> io::Result<()> {
    control(fd.as_fd(), libc::F_OFD_SETLKW, offset, raw(kind)).map(drop)
}

/// Takes the lock on byte `offset` if it is free; returns whether it did.
pub fn try_lock(fd: impl AsFd, offset: u64, kind: Kind) -> io::Result<bool> {
    match control(fd.as_fd(), libc::F_OFD_SETLK, offset, raw(kind)) {
        Ok(_) => Ok(true),
        Err(Errno::AGAIN | Errno::ACCESS) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// Gives up the lock on byte `offset`, for every copy of the descriptor.
pub fn unlock(fd: impl AsFd, offset: u64) -> io::Result<()> {
    control(fd.as_fd(), libc::F_OFD_SETLK, offset, libc::F_UNLCK).map(drop)
}

/// Gives up all locks of an open file, for every copy of the descriptor.
pub fn unlock_all(fd: impl AsFd) -> io::Result<()> {
    control_range(fd.as_fd(), libc::F_OFD_SETLK, 0..0, libc::F_UNLCK).map(drop)
}

/// Whether another open file holds an exclusive lock on byte `offset`.
pub fn is_held_by_another(fd: impl AsFd, offset: u64) -> io::Result<bool> {
    let answer = control(fd.as_fd(), libc::F_OFD_GETLK, offset, libc::F_RDLCK)?;
    Ok(answer != libc::F_UNLCK)
}

/// The processes that have an open file with an exclusive lock on byte `offset` of the same file,
/// children that inherited it among them; of those that the caller may look at.
///
/// The kernel does not name the holders of such locks, so this looks at every open file of every
/// process: for reports to people, not for programs that wait.
pub fn holders(file: impl AsFd, offset: u64) -> Vec<u32> {
    let Ok(file) = rustix::fs::fstat(file) else { return Vec::new() };
    let is_same = |fd: &str| {
        let open = fs::metadata(fd);
        open.is_ok_and(|open| (open.dev(), open.ino()) == (file.st_dev, file.st_ino))
    };
    let holds = |pid: &u32| {
        names(&format!("/proc/{pid}/fdinfo")).any(|fd| {
            let info = read_text(format!("/proc/{pid}/fdinfo/{fd}")).unwrap_or_default();
            info.lines().any(|line| covers(line, offset))
                && is_same(&format!("/proc/{pid}/fd/{fd}"))
        })
    };
    names("/proc").filter_map(|name| name.parse().ok()).filter(holds).collect()
}

fn names(directory: &str) -> impl Iterator<Item = String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok())
}

/// Whether a line of `/proc/PID/fdinfo/FD` is about an exclusive lock of that open file on a byte:
/// `lock: 1: OFDLCK ADVISORY WRITE -1 fe:00:1234 0 0`.
fn covers(line: &str, offset: u64) -> bool {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let ["lock:", _, "OFDLCK", _, "WRITE", _, _, start, end] = fields[..] else { return false };
    let is_from = start.parse().is_ok_and(|start: u64| start <= offset);
    is_from && (end == "EOF" || end.parse().is_ok_and(|end: u64| offset <= end))
}

/// Whether another open file holds any lock on byte `offset`.
pub fn is_locked_by_another(fd: impl AsFd, offset: u64) -> io::Result<bool> {
    let answer = control(fd.as_fd(), libc::F_OFD_GETLK, offset, libc::F_WRLCK)?;
    Ok(answer != libc::F_UNLCK)
}

/// Whether a process waits for a lock on this file. Another file of the same number on another
/// filesystem may pass for it.
pub fn is_waited_for(fd: impl AsFd) -> io::Result<bool> {
    let inode = format!(":{}", rustix::fs::fstat(fd)?.st_ino);
    let locks = read_text("/proc/locks").unwrap_or_default();
    let mut waiting = locks.lines().filter(|line| line.contains("->"));
    Ok(waiting.any(|line| line.split_whitespace().any(|field| field.ends_with(&inode))))
}

fn raw(kind: Kind) -> i32 {
    match kind {
        Kind::Shared => libc::F_RDLCK,
        Kind::Exclusive => libc::F_WRLCK,
    }
}

/// One `fcntl` lock command on one byte; returns the lock type the kernel left in the structure.
fn control(fd: BorrowedFd<'_>, command: i32, offset: u64, lock_type: i32) -> io::Result<i32> {
    control_range(fd, command, offset..offset + 1, lock_type)
}

/// The same on a range, of which one from 0 to 0 is the whole file.
fn control_range(
    fd: BorrowedFd<'_>,
    command: i32,
    bytes: Range<u64>,
    lock_type: i32,
) -> io::Result<i32> {
    let mut request = libc::flock {
        l_type: lock_type as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: bytes.start as libc::off_t,
        l_len: (bytes.end - bytes.start) as libc::off_t,
        l_pid: 0,
    };
    // A signal may interrupt even a request that does not wait, on filesystems of other machines.
    retry(|| {
        // SAFETY: the descriptor is open for the length of the borrow, the command is one of the
        // three that take a `struct flock`, and `request` outlives the call.
        let answer = unsafe { libc::fcntl(fd.as_raw_fd(), command, &raw mut request) };
        if answer == -1 {
            let code = std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO);
            return Err(Errno::from_raw_os_error(code));
        }
        Ok(())
    })?;
    Ok(i32::from(request.l_type))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::time::{Duration, Instant};

    #[test]
    fn a_lock_is_seen_by_others_and_goes_with_its_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let open = || File::options().read(true).write(true).open(file.path()).unwrap();
        let (first, second) = (open(), open());
        assert!(try_lock(&first, 7, Kind::Exclusive).unwrap());
        assert!(!is_held_by_another(&first, 7).unwrap(), "its own lock is not another's");
        assert!(is_held_by_another(&second, 7).unwrap());
        assert!(!is_held_by_another(&second, 8).unwrap());
        assert!(!try_lock(&second, 7, Kind::Exclusive).unwrap());
        assert_eq!(holders(&second, 7), [std::process::id()]);
        assert_eq!(holders(&second, 8), []);
        drop(first);
        // A child of another test may have a copy until it starts its program.
        let until = Instant::now() + Duration::from_secs(60);
        while !holders(&second, 7).is_empty() {
            assert!(Instant::now() < until, "{:?}", holders(&second, 7));
            std::thread::yield_now();
        }
        assert!(try_lock(&second, 7, Kind::Exclusive).unwrap());
    }

    #[test]
    fn who_waits_for_a_lock_is_seen() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let open = || File::options().read(true).write(true).open(file.path()).unwrap();
        let (holder, waiter) = (open(), open());
        assert!(try_lock(&holder, 7, Kind::Exclusive).unwrap());
        assert!(!is_waited_for(&holder).unwrap());
        std::thread::scope(|scope| {
            scope.spawn(|| lock(&waiter, 7, Kind::Exclusive).unwrap());
            while !is_waited_for(&holder).unwrap() {
                std::thread::yield_now();
            }
            unlock(&holder, 7).unwrap();
        });
        assert!(!is_waited_for(&holder).unwrap());
    }

    #[test]
    fn a_shared_lock_of_a_reader_does_not_pass_for_a_life() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let reader = File::open(file.path()).unwrap();
        let writer = File::options().read(true).write(true).open(file.path()).unwrap();
        assert!(try_lock(&reader, 7, Kind::Shared).unwrap());
        assert!(!is_held_by_another(&writer, 7).unwrap());
    }
}
