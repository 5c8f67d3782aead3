//! What one process remembers to know its log again: see `removal`.

use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicU64;

use rustix::{fs, io};

use crate::sys::clock;

/// What one process remembers to know its log again.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// `None` where nobody looks.
    pub(crate) files: Option<Files>,
    /// The second in which somebody looked last.
    pub(crate) looked_at: AtomicU64,
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
        Ok(Watch { files, looked_at: AtomicU64::new(clock::uptime()) })
    }
}

/// Looks at a clock that some appends leave out: it costs a tenth of a short one.
#[derive(Debug, Default)]
pub(crate) struct Glance {
    /// Appends that go by before the next look.
    pub(crate) left: u8,
    /// How many went by before the last one.
    pub(crate) step: u8,
}
