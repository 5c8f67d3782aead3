//! The file that a stage is written to, and the way there: past the page cache, or through it where
//! the filesystem refuses direct writes.
//!
//! Some filesystems refuse them when a file is opened, others (unions by FUSE) only when one is
//! made. Neither says anything of the device.

use std::path::Path;
use std::sync::OnceLock;

use rustix::fs::OFlags;
use rustix::io;

use crate::DeviceWrite;
use crate::sys::Dir;
use crate::sys::file::is_unsupported;
use crate::sys::filesystem::Filesystem;
use crate::sys::kept::KeptFile;
use crate::sys::sync::{check_in_service_on, sync_data_on};

/// A file opened for writes that are to survive a power cut.
#[derive(Debug, Default)]
pub(crate) struct Target {
    direct: OnceLock<KeptFile>,
    /// Opened where direct writes are refused; used instead of the other from then on.
    cached: OnceLock<KeptFile>,
}

impl Target {
    /// Opens the file at `path`, once.
    pub(crate) fn open(&self, dir: &Dir, path: &Path, by: DeviceWrite) -> io::Result<&KeptFile> {
        if let Some(target) = self.opened() {
            return Ok(target);
        }
        let flags = if by == DeviceWrite::Dsync { OFlags::DSYNC } else { OFlags::empty() };
        match dir.open_file(path, OFlags::RDWR | OFlags::DIRECT | flags) {
            Err(errno) if is_unsupported(errno) => self.open_cached(dir, path),
            answer => answer.map(|fd| self.direct.get_or_init(|| KeptFile::new(fd))),
        }
    }

    /// The file that is written to from now on, if it is open.
    fn opened(&self) -> Option<&KeptFile> {
        self.cached.get().or_else(|| self.direct.get())
    }

    /// `BADF` where the descriptor is not that file any more.
    pub(crate) fn check(&self) -> io::Result<()> {
        self.opened().map_or(Ok(()), KeptFile::check)
    }

    /// Through the page cache a write and its sync stay one call, with one error.
    fn open_cached(&self, dir: &Dir, path: &Path) -> io::Result<&KeptFile> {
        let fd = dir.open_file(path, OFlags::RDWR | OFlags::DSYNC)?;
        Ok(self.cached.get_or_init(|| KeptFile::new(fd)))
    }

    /// Has `write` write to the file, and once more through the page cache where it is refused.
    pub(crate) fn write(
        &self,
        dir: &Dir,
        path: &Path,
        by: DeviceWrite,
        write: impl Fn(&KeptFile) -> io::Result<()>,
    ) -> io::Result<()> {
        match write(self.open(dir, path, by)?) {
            Err(errno) if is_unsupported(errno) => write(self.open_cached(dir, path)?),
            answer => answer,
        }
    }

    /// Whether writes pass the page cache by: one that finds no space has left nothing there then.
    pub(crate) fn is_direct(&self) -> bool {
        self.cached.get().is_none()
    }

    /// Waits until what was written survives a power cut, if the write has not waited itself.
    pub(crate) fn sync(&self, filesystem: Filesystem, by: DeviceWrite) -> io::Result<()> {
        self.opened().map_or(Ok(()), |target| match by {
            DeviceWrite::Fdatasync if self.is_direct() => sync_data_on(filesystem, target),
            _ if self.is_direct() && filesystem.answers_direct_writes() => Ok(()),
            _ => check_in_service_on(filesystem, target),
        })
    }
}
