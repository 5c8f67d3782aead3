//! The file of a segment or a stage in which zeros are written ahead of the tail.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::OFlags;
use rustix::io::{self, Errno};

use crate::Result;
use crate::error::OsResult;
use crate::segment::file::Segment;
use crate::sys::{self, Dir, Map};

/// A file in which zeros are written ahead.
pub(crate) enum ZeroedFile {
    /// One that this process has open: nothing is opened and mapped for a page of zeros.
    Open(Arc<Segment>),
    Other(OwnedFd, PathBuf),
}

impl ZeroedFile {
    /// The file at `path`, which this process does not have open.
    pub(crate) fn open(dir: &Dir, path: PathBuf) -> Result<ZeroedFile> {
        let fd = dir.open_file(&path, OFlags::RDWR).or_os("open the segment", &path)?;
        Ok(ZeroedFile::Other(fd, path))
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        match self {
            ZeroedFile::Open(segment) => segment.fd(),
            ZeroedFile::Other(fd, _) => fd.as_fd(),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        match self {
            ZeroedFile::Open(segment) => &segment.file.path,
            ZeroedFile::Other(_, path) => path,
        }
    }

    /// Refuses what was written up to `end`, where the kernel says that a store into its last page
    /// would fail.
    ///
    /// The page cache keeps pages in folios, and the first store into a page needs blocks for all
    /// of its folio. A folio may reach beyond `end`, where the file does: a process has read there,
    /// or a longer write has found the disk full.
    pub(crate) fn prove_storable(&self, end: u64) -> io::Result<()> {
        if sys::file::len(self.fd())? <= end {
            return Ok(());
        }
        let page = rustix::param::page_size();
        let last = (end as usize - 1) / page * page;
        let populated = match self.map() {
            Some(map) => map.try_populate(last, page),
            None => Map::at(self.fd(), last as u64, page, true)?.try_populate(0, page),
        };
        match populated {
            Err(Errno::FAULT) => Err(Errno::NOSPC),
            // A system that cannot do it returns no error either.
            _ => Ok(()),
        }
    }

    fn map(&self) -> Option<&Map> {
        match self {
            ZeroedFile::Open(segment) => segment.kept_map(),
            ZeroedFile::Other(..) => None,
        }
    }
}
