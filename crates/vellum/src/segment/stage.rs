//! The stage: shared memory in which records wait until they are committed.
//!
//! A directory on a tmpfs, beside the log and not in it, because what lies in a log's directory is
//! written to the device by the kernel whether it is committed or not. Each segment that records
//! go to has a file there with the same offsets; it survives processes, as the page cache does,
//! and goes with a reboot. When all of a segment is durable its stage is used again for the next:
//! its pages are there already.
//!
//! **If the process dies here**: a file under its unfinished name is made again; what is left of
//! a log that was removed stays until the next boot.

use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{self, Access, Mode, OFlags};
use rustix::io::{self, Errno};

use crate::error::OsResult;
use crate::sys::filesystem::Filesystem;
use crate::{Error, ErrorKind, Fill, Lsn, Result, sys};

/// Where shared memory is to be had.
const SHARED_MEMORY: &str = "/dev/shm";
const UNFINISHED_NAME: &str = "new.stage";
const SPARE_NAME: &str = "spare.stage";

/// The stage of one log.
pub(crate) struct Stage {
    dir: PathBuf,
}

impl Stage {
    /// The stage of the log in `log_dir` with this secret.
    pub(crate) fn of(log_dir: &Path, secret: u64) -> Stage {
        // The directory's identity counts too: a copy of a log has the same secret.
        let (device, inode) = match std::fs::metadata(log_dir) {
            Ok(metadata) => (metadata.dev(), metadata.ino()),
            Err(_) => (0, 0),
        };
        let place = inode.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ device.rotate_left(32);
        let name = format!("vellum-{:016x}", secret ^ place);
        Stage { dir: Path::new(SHARED_MEMORY).join(name) }
    }

    /// Whether this machine has shared memory to stage in.
    fn is_offered() -> bool {
        let is_memory = || -> io::Result<bool> {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            let fd = sys::file::open(SHARED_MEMORY.as_ref(), flags, 0)?;
            Ok(Filesystem::of(&fd)? == Filesystem::Tmpfs)
        };
        is_memory() == Ok(true) && fs::access(SHARED_MEMORY, Access::WRITE_OK).is_ok()
    }

    /// The way to fill that takes the place of one that this machine does not have.
    pub(crate) fn offered(fill: Fill) -> Fill {
        if fill == Fill::Staged && !Stage::is_offered() { Fill::Pwrite } else { fill }
    }

    /// The stage of the segment at `first`.
    pub(crate) fn path(&self, first: Lsn) -> PathBuf {
        self.dir.join(format!("{:016x}.stage", first.get()))
    }

    /// Makes the directory anew, for the log in `log_dir`; returns its inode.
    pub(crate) fn create(&self, log_dir: &Path, mode: u32) -> Result<u64> {
        self.remove();
        let search = (mode & 0o444) >> 2 | (mode & 0o222) >> 1;
        let permissions = Mode::from_raw_mode(mode | search);
        match fs::mkdir(&self.dir, permissions) {
            Ok(()) => {
                // Whatever this process's umask is, the stage is for who may use the log.
                let _ = fs::chmod(&self.dir, permissions);
            }
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(Error::os(errno, "create the stage", &self.dir)),
        }
        self.check_owner(log_dir)?;
        self.inode().ok_or_else(|| Error::os(Errno::NOENT, "look at the stage", &self.dir))
    }

    /// Which directory it is; `None` where there is none.
    pub(crate) fn inode(&self) -> Option<u64> {
        let metadata = std::fs::symlink_metadata(&self.dir).ok().filter(|m| m.is_dir())?;
        Some(metadata.ino())
    }

    /// Refuses a directory that somebody else has put there.
    fn check_owner(&self, log_dir: &Path) -> Result<()> {
        let look = |path: &Path| fs::lstat(path).or_os("look at", path);
        let owner = look(&self.dir)?.st_uid;
        let mine = rustix::process::geteuid().as_raw();
        if owner == mine || owner == look(log_dir)?.st_uid {
            return Ok(());
        }
        let message = format!("the stage belongs to user {owner}, who does not own the log");
        Err(Error::new(ErrorKind::PermissionDenied, message).at_path(&self.dir))
    }

    /// Makes the stage of the segment at `first`, of `len` bytes, replacing what a dead preparer
    /// left. All its pages are there when this returns.
    pub(crate) fn make(&self, first: Lsn, len: u64, mode: u32) -> Result<()> {
        let unfinished = self.dir.join(UNFINISHED_NAME);
        let _ = fs::rename(self.dir.join(SPARE_NAME), &unfinished);
        self.fill_unfinished(&unfinished, len, mode)?;
        let target = self.path(first);
        fs::rename(&unfinished, &target).or_os("name the stage of the next segment", &target)
    }

    /// Makes a file for the next segment ahead of need, which takes as long as a few commits.
    pub(crate) fn make_spare(&self, len: u64, mode: u32) -> Result<()> {
        let unfinished = self.dir.join(UNFINISHED_NAME);
        self.fill_unfinished(&unfinished, len, mode)?;
        let target = self.dir.join(SPARE_NAME);
        fs::rename(&unfinished, &target).or_os("name the spare stage", &target)
    }

    fn fill_unfinished(&self, path: &Path, len: u64, mode: u32) -> Result<()> {
        sys::file::check_size_limit(len).or_os("make room in the stage", path)?;
        let fill = || -> io::Result<()> {
            let fd = self.open_unfinished(path, mode)?;
            // What is long enough has been used before.
            match sys::file::len(&fd)? {
                old_len if old_len == len => Ok(()),
                _ => sys::file::write_zeros_at(&fd, 0, len),
            }
        };
        fill().map_err(|errno| {
            let _ = fs::unlink(path);
            Error::os(errno, "make room in the stage", path)
        })
    }

    fn open_unfinished(&self, path: &Path, mode: u32) -> io::Result<OwnedFd> {
        let fd = sys::file::open(path, OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW, mode)?;
        let _ = fs::fchmod(&fd, Mode::from_raw_mode(mode));
        Ok(fd)
    }

    /// Puts bytes into the stage of the segment at `first`.
    pub(crate) fn write(&self, first: Lsn, offset: u64, bytes: &[u8]) -> Result<()> {
        let path = self.path(first);
        let fd = sys::file::open(&path, OFlags::RDWR, 0).or_os("open the stage", &path)?;
        sys::file::write_all_at(&fd, bytes, offset).or_os("write to the stage", &path)
    }

    /// Lets the stage of the segment at `first` be used again.
    pub(crate) fn retire(&self, first: Lsn) {
        let path = self.path(first);
        let spare = self.dir.join(SPARE_NAME);
        if std::fs::symlink_metadata(&spare).is_ok() {
            let _ = fs::unlink(&path);
        } else {
            let _ = fs::rename(&path, &spare);
        }
    }

    /// Removes everything; what cannot be removed goes with the next boot.
    pub(crate) fn remove(&self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }

    /// Where it is.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }
}
