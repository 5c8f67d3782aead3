//! The memory by which a process knows its log again: see `place`.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::{fs, io};

use crate::sys::clock;

/// Seconds from one wait for a removal to the next.
const WAITS_EVERY_SECONDS: u64 = 60;
/// How long after a wait began others begin one.
const MOMENT_SECONDS: u64 = 2;

/// The memory by which a process knows its log again.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// `None` where no append checks.
    pub(crate) files: Option<Files>,
    /// The second of the last check.
    pub(crate) checked_at: AtomicU64,
    /// The tail word of the control file when a reader could not believe it.
    pub(crate) tail_word: u64,
    /// Until when no call waits for a removal to be completed, after it was waited for once.
    waits_again_at: AtomicU64,
}

/// Device and inode of the files that a process has open as long as it is in the log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Files {
    pub(crate) control: (u64, u64),
    pub(crate) lock: (u64, u64),
}

impl Watch {
    pub(crate) fn new(control: &OwnedFd, lock: &OwnedFd) -> io::Result<Watch> {
        let identity = |fd| fs::fstat(fd).map(|status| (status.st_dev, status.st_ino));
        let files = Some(Files { control: identity(control)?, lock: identity(lock)? });
        Ok(Watch {
            files,
            checked_at: AtomicU64::new(clock::uptime()),
            tail_word: 0,
            waits_again_at: AtomicU64::new(0),
        })
    }

    /// Whether this is the first look in this second.
    pub(crate) fn is_due(&self) -> bool {
        let now = clock::uptime();
        self.checked_at.swap(now, Ordering::Relaxed) != now
    }

    /// Whether to wait for a removal to be completed: calls of the same moment do, and then none
    /// for a minute.
    pub(crate) fn may_wait(&self) -> bool {
        let now = clock::uptime();
        let again = self.waits_again_at.load(Ordering::Relaxed);
        if now < again {
            return now + WAITS_EVERY_SECONDS < again + MOMENT_SECONDS;
        }
        self.waits_again_at.store(now + WAITS_EVERY_SECONDS, Ordering::Relaxed);
        true
    }
}

/// How many appends go by between two checks: reading the clock costs a tenth of a short append.
#[derive(Debug, Default)]
pub(crate) struct CheckInterval {
    /// Appends that go by before the next check.
    pub(crate) left: u8,
    /// How many went by before the last one.
    pub(crate) step: u8,
}
