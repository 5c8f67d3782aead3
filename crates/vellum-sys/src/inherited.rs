//! Descriptors with locks, and the copies of them in a forked child.
//!
//! A child shares its parent's open files, and with them the locks. [`Marked`] is for files that a
//! child keeps until it knows better, and then closes; [`Brief`] and [`Kept`] for those that no
//! child may keep.
//!
//! # Safety
//!
//! A descriptor is closed by its number in two places: by [`Marked::close_inherited`], whose owner
//! is leaked, and by `close_brief`, in a child whose only thread owns none of them.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::fs::{self, OFlags, SeekFrom};
use rustix::io;

use crate::fork::AtLeastOnce;
use crate::kept::far;
use crate::{Dir, lock, process};

/// A descriptor of a file that is used for locks alone, told from others by the open file's
/// position: programs that become daemons close all descriptors, and others get their numbers.
pub struct Marked {
    /// `None` only while this is dropped.
    fd: Option<OwnedFd>,
    mark: u64,
}

impl Marked {
    /// Opens the file at `path` in `dir` and marks its descriptor.
    pub fn open(dir: &Dir, path: &Path) -> io::Result<Marked> {
        Marked::new(dir.open_file(path, OFlags::RDWR)?)
    }

    /// Marks an open file, by moving its position.
    pub fn new(fd: OwnedFd) -> io::Result<Marked> {
        // 32 bits, because a position must be one that files of the filesystem can have.
        let mark = process::random_u64() >> 32;
        fs::seek(&fd, SeekFrom::Start(mark))?;
        Ok(Marked { fd: Some(far(fd)), mark })
    }

    /// Whether the descriptor is still that file.
    pub fn is_open(&self) -> bool {
        fs::tell(self.fd()) == Ok(self.mark)
    }

    /// The descriptor.
    pub fn fd(&self) -> &OwnedFd {
        self.fd.as_ref().expect("kept until this is dropped")
    }

    /// Closes a child's copy of a descriptor whose owner is about to be leaked.
    pub fn close_inherited(&self) {
        if self.is_open() {
            // SAFETY: called from `Inherit::disown`, after which the owner is never used nor
            // dropped; and the number still means what it meant.
            unsafe { io::close(self.fd().as_raw_fd()) };
        }
    }
}

impl Drop for Marked {
    fn drop(&mut self) {
        if !self.is_open() {
            // A file of the program by now.
            std::mem::forget(self.fd.take());
        }
    }
}

/// Brief and kept descriptors of this process, so that a child can close its copies; -1 where there
/// is none.
static BRIEF: [AtomicI32; 256] = [const { AtomicI32::new(-1) }; 256];

/// A file opened to hold locks for a moment. A forked child's copy is closed at once, so that it
/// holds no lock, not even if the parent dies at that moment; and the locks end when this is
/// dropped, not when the last copy is closed.
///
/// Not covered: a child that is forked between `open` and the note of it, by a process that is
/// killed before it has dropped this; and children that the C library does not know of (`clone`).
pub struct Brief {
    fd: OwnedFd,
    /// Where it is noted; nowhere if many are open.
    noted: Option<&'static AtomicI32>,
}

impl Brief {
    /// Opens the file at `path` in `dir`.
    pub fn open(dir: &Dir, path: &Path) -> io::Result<Brief> {
        let fd = dir.open_file(path, OFlags::RDWR)?;
        let noted = note(&fd);
        Ok(Brief { fd, noted })
    }
}

/// Sees to it that a forked child closes its copy; returns where that is noted.
fn note(fd: &OwnedFd) -> Option<&'static AtomicI32> {
    static HANDLER: AtLeastOnce = AtLeastOnce::new();
    // One that is there twice finds nothing left to close the second time.
    HANDLER.ensure(|| {
        // SAFETY: the handler makes only calls that a child of a process with threads may make.
        // Without it, for want of memory, locks end when they are given up, as they do otherwise.
        unsafe { libc::pthread_atfork(None, None, Some(close_brief)) };
    });
    let number = fd.as_raw_fd();
    let is_free = |place: &&AtomicI32| {
        place.compare_exchange(-1, number, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    };
    BRIEF.iter().find(is_free)
}

impl AsFd for Brief {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Brief {
    fn drop(&mut self) {
        let _ = lock::unlock_all(&self.fd);
        if let Some(place) = self.noted {
            place.store(-1, Ordering::SeqCst);
        }
    }
}

/// A file opened to hold locks for as long as this is there, in the process that opened it. A
/// forked child has no copy of it, so its parent's locks end with the parent; and its inherited
/// copy of this value owns and closes nothing.
pub struct Kept {
    /// `None` only while this is dropped.
    marked: Option<Marked>,
    pid: u32,
    noted: &'static AtomicI32,
}

impl Kept {
    /// Opens the file at `path` in `dir`; `MFILE` in a process that has about 250 of them.
    pub fn open(dir: &Dir, path: &Path) -> io::Result<Kept> {
        let marked = Marked::open(dir, path)?;
        let noted = note(marked.fd()).ok_or(io::Errno::MFILE)?;
        Ok(Kept { marked: Some(marked), pid: std::process::id(), noted })
    }

    /// The descriptor, in the process that opened it and has not closed it behind our back.
    pub fn fd(&self) -> Option<&OwnedFd> {
        let marked = self.marked.as_ref().filter(|_| self.pid == std::process::id())?;
        marked.is_open().then_some(marked.fd())
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if let Some(fd) = self.fd() {
            let _ = lock::unlock_all(fd);
            self.noted.store(-1, Ordering::SeqCst);
        } else {
            // Another file's by now.
            std::mem::forget(self.marked.take());
        }
    }
}

/// Runs in every forked child.
extern "C" fn close_brief() {
    for place in &BRIEF {
        let number = place.swap(-1, Ordering::Relaxed);
        if number >= 0 {
            // The kernel copies descriptors before memory, so it may not be open here.
            // SAFETY: the owner is on the stack of a thread that this process does not have.
            unsafe { libc::close(number) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file;
    use crate::lock::{Kind, is_held_by_another, try_lock};
    use tempfile::NamedTempFile;

    fn directory(file: &NamedTempFile) -> Dir {
        Dir::open(file.path().parent().unwrap()).unwrap()
    }

    /// What `look` says in a forked child; it may use nothing but system calls.
    fn in_child(look: impl Fn() -> bool) -> bool {
        // SAFETY: the child uses nothing that other threads may hold, and ends by `_exit`.
        unsafe {
            match libc::fork() {
                0 => libc::_exit(i32::from(look())),
                child => {
                    let mut status = 0;
                    assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
                    libc::WEXITSTATUS(status) == 1
                }
            }
        }
    }

    fn is_open(number: i32) -> bool {
        // SAFETY: only asks.
        unsafe { libc::fcntl(number, libc::F_GETFD) != -1 }
    }

    #[test]
    fn a_child_has_no_copy_of_a_brief_file() {
        let file = NamedTempFile::new().unwrap();
        let brief = Brief::open(&directory(&file), file.path()).unwrap();
        assert!(try_lock(&brief, 7, Kind::Exclusive).unwrap());
        let number = brief.fd.as_raw_fd();
        assert!(is_open(number) && !in_child(|| is_open(number)));
        let other = file::open(file.path(), OFlags::RDWR, 0).unwrap();
        assert!(is_held_by_another(&other, 7).unwrap(), "the parent holds it still");
        let copy = brief.fd.try_clone().unwrap();
        drop(brief);
        assert!(!is_held_by_another(&other, 7).unwrap(), "whoever has a copy");
        drop(copy);
    }

    #[test]
    fn a_child_inherits_no_kept_file_and_closes_none() {
        let file = NamedTempFile::new().unwrap();
        let kept = Kept::open(&directory(&file), file.path()).unwrap();
        assert!(try_lock(kept.fd().unwrap(), 7, Kind::Exclusive).unwrap());
        let number = kept.fd().unwrap().as_raw_fd();
        let other = file::open(file.path(), OFlags::RDWR, 0).unwrap();
        let kept = std::cell::RefCell::new(Some(kept));
        let closes_another = || {
            let is_nobodys = kept.borrow().as_ref().unwrap().fd().is_none() && !is_open(number);
            // SAFETY: only makes a descriptor, under the number that the parent's file has.
            let taken = unsafe { libc::dup2(other.as_raw_fd(), number) } == number;
            drop(kept.take());
            !is_nobodys || !taken || !is_open(number)
        };
        assert!(!in_child(closes_another));
        assert!(is_held_by_another(&other, 7).unwrap(), "the parent holds it still");
        drop(kept);
        assert!(!is_held_by_another(&other, 7).unwrap());
    }

    #[test]
    fn a_marked_file_is_closed_and_one_in_its_place_is_not() {
        let file = NamedTempFile::new().unwrap();
        let marked = Marked::open(&directory(&file), file.path()).unwrap();
        let number = marked.fd().as_raw_fd();
        let closes = || {
            marked.close_inherited();
            !is_open(number)
        };
        assert!(in_child(closes));
        let other = file::open(file.path(), OFlags::RDWR, 0).unwrap();
        // SAFETY: in the child, whose copy of `marked` is not used as the owner of its number.
        assert!(!in_child(|| unsafe { libc::dup2(other.as_raw_fd(), number) } == -1 || closes()));
    }
}
