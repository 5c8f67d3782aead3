//! The gate: one process at a time opens, leaves or recovers a log.
//!
//! Entered through an open file of its own: a forked child shares the locks of its parent's
//! attachment, but not these.
//!
//! **If the process dies here**: the gate is open again.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::fs::{OFlags, Stat, fstat};
use rustix::io::{self, Errno};

use crate::Result;
use crate::error::OsResult;
use crate::files::names::LOCK_NAME;
use crate::shared::participants::{GATE_BYTE, PRESENCE_BYTE};
use crate::sys::Dir;
use crate::sys::inherited::Brief;
use crate::sys::lock::{self, Kind};

/// How long to wait for a program that is being started.
const STARTING_MILLIS: u32 = 50;

/// The gate, held until dropped.
pub(crate) struct Gate {
    file: Brief,
}

impl Gate {
    /// Waits until the gate of the log in `dir` is free.
    pub(crate) fn enter(dir: &Dir) -> Result<Gate> {
        let path = dir.join(LOCK_NAME);
        let file = Brief::open(dir, &path).or_os("open", &path)?;
        lock::lock(&file, GATE_BYTE, Kind::Exclusive).or_os("lock", &path)?;
        Ok(Gate { file })
    }

    /// Whether it is that of `lock_file`, which has its name still: the creator of a log that could
    /// not be made removes the file.
    pub(crate) fn is_of(&self, lock_file: &OwnedFd, dir: &Dir) -> io::Result<bool> {
        let place = |status: Stat| (status.st_dev, status.st_ino);
        let named = match dir.stat(&dir.join(LOCK_NAME)) {
            Err(Errno::NOENT) => return Ok(false),
            answer => place(answer?),
        };
        Ok(place(fstat(&self.file)?) == named && place(fstat(lock_file)?) == named)
    }

    /// Whether no process is attached, nor a forked child of one that may attach; as long as the
    /// gate is held, none will be.
    pub(crate) fn is_alone(&self) -> io::Result<bool> {
        lock::try_lock(&self.file, PRESENCE_BYTE, Kind::Exclusive)
    }

    /// As [`is_alone`](Gate::is_alone), waiting a moment unless some process is attached, or waits
    /// at the gate: a program that another thread is starting has this process's open files until
    /// it is executed, but a forked child may want to attach.
    pub(crate) fn is_soon_alone(
        &self,
        is_somebody_attached: impl Fn() -> bool,
    ) -> io::Result<bool> {
        for _ in 0..STARTING_MILLIS {
            if self.is_alone()? {
                return Ok(true);
            }
            if is_somebody_attached() || lock::is_waited_for(&self.file)? {
                return Ok(false);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        self.is_alone()
    }

    /// Lets others be present again, after [`is_alone`](Gate::is_alone).
    pub(crate) fn let_in(&self) -> io::Result<()> {
        lock::unlock(&self.file, PRESENCE_BYTE)
    }
}

/// Whether some process is attached, as far as a caller can tell that may not wait at the gate:
/// without the right to open the lock file it finds none. A process that is alone may be about to
/// change the words, and is not attached yet, or no longer.
pub(crate) fn is_somebody_present(dir: &Dir) -> bool {
    // For reading: to ask for a lock takes no more, and a filesystem may be mounted for reading
    // only.
    let file = dir.open_file(&dir.join(LOCK_NAME), OFlags::RDONLY);
    file.is_ok_and(|file| {
        lock::is_held_by_another(&file, PRESENCE_BYTE) == Ok(false)
            && lock::is_locked_by_another(&file, PRESENCE_BYTE) == Ok(true)
    })
}
