//! The gate: one process at a time opens, leaves or rebuilds a log.
//!
//! Entered through an open file of its own, which closes with it: a child that was forked before
//! shares the locks of its parent's attachment, but not these, so a process that dies in the gate
//! leaves it open.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io;

use crate::error::OsResult;
use crate::log::LOCK_NAME;
use crate::shared::participants::{GATE_BYTE, PRESENCE_BYTE};
use crate::sys::lock::{self, Kind};
use crate::{Result, sys};

/// The gate, held until dropped.
pub(crate) struct Gate {
    file: OwnedFd,
}

impl Gate {
    /// Waits until nobody else is in the gate of the log in `dir`.
    pub(crate) fn enter(dir: &Path) -> Result<Gate> {
        let path = dir.join(LOCK_NAME);
        let file = sys::file::open(&path, OFlags::RDWR, 0).or_os("open", &path)?;
        lock::lock(&file, GATE_BYTE, Kind::Exclusive).or_os("lock", &path)?;
        Ok(Gate { file })
    }

    /// Whether no process is attached; as long as the gate is held, none will be.
    pub(crate) fn is_alone(&self) -> io::Result<bool> {
        lock::try_lock(&self.file, PRESENCE_BYTE, Kind::Exclusive)
    }

    /// Lets others be present again, after [`is_alone`](Gate::is_alone).
    pub(crate) fn let_in(&self) -> io::Result<()> {
        lock::unlock(&self.file, PRESENCE_BYTE)
    }
}
