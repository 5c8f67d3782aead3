//! The way that bytes take into the file: chosen once, by the filesystem and what was asked for.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io;
use vellum::internal;
use vellum_sys::{self as sys, filesystem::Filesystem};

use super::Method;
use super::buffer::Pool;
use super::direct::{Direct, Means};
use super::mapped::Mapped;

/// How bytes get into the file.
#[derive(Debug)]
pub(super) enum Way {
    Buffered { allocates: bool },
    Direct(Direct),
    Mapped(Mapped),
}

impl Way {
    /// The way into the new file at `path`, open as `fd`, that will have `len` bytes where that is
    /// known.
    pub(super) fn choose(
        fd: &OwnedFd,
        path: &Path,
        len: Option<u64>,
        method: Method,
        sync: bool,
    ) -> io::Result<Way> {
        use Filesystem::{Btrfs, Ext, Tmpfs};
        let filesystem = Filesystem::of(fd)?;
        let method = match method {
            Method::Auto => internal::method(filesystem, sync),
            method => method,
        };
        match method {
            // Memory has no device to write to directly.
            Method::Direct if filesystem != Tmpfs => {
                if filesystem == Btrfs {
                    sys::file::overwrite_in_place(fd);
                }
                let flags = OFlags::WRONLY | OFlags::DIRECT | OFlags::NOFOLLOW;
                if let Ok(direct) = sys::file::open(path, flags, 0) {
                    return Ok(Way::Direct(Direct::new(direct, len)?));
                }
            }
            Method::Mapped if can_map(fd, filesystem) => {
                return Ok(Way::Mapped(Mapped::new(len, filesystem == Tmpfs)));
            }
            _ => {}
        }
        // XFS and btrfs write faster into space that they allocate when pages are written back.
        Ok(Way::Buffered { allocates: matches!(filesystem, Ext | Tmpfs) })
    }

    /// The method that this is.
    pub(super) fn method(&self) -> Method {
        match self {
            Way::Direct(direct) if !direct.is_refused() => Method::Direct,
            Way::Mapped(_) => Method::Mapped,
            _ => Method::Buffered,
        }
    }

    /// Does ahead what can be done for a file of `len` bytes, at least one.
    pub(super) fn prepare(&self, fd: BorrowedFd<'_>, len: u64) -> io::Result<()> {
        match self {
            Way::Direct(direct) => direct.ground.prepare(fd),
            Way::Mapped(mapped) => mapped.ground.prepare(fd),
            Way::Buffered { allocates: true } => match sys::file::allocate_range(fd, 0, len) {
                Err(io::Errno::OPNOTSUPP) => Ok(()),
                answer => answer,
            },
            Way::Buffered { allocates: false } => Ok(()),
        }
    }

    /// Writes `bytes` at `offset`, or keeps them until their neighbours come.
    pub(super) fn write(
        &self,
        fd: BorrowedFd<'_>,
        pool: &Pool,
        offset: u64,
        bytes: &[u8],
    ) -> io::Result<()> {
        sys::file::check_size_limit(offset.saturating_add(bytes.len() as u64))?;
        match self {
            Way::Buffered { .. } => sys::file::write_all_at(fd, bytes, offset),
            Way::Direct(direct) => direct.write(Means { buffered: fd, pool }, offset, bytes),
            Way::Mapped(mapped) => mapped.write(fd, offset, bytes),
        }
    }

    /// Writes what is still kept.
    pub(super) fn finish(&self, fd: BorrowedFd<'_>, pool: &Pool) -> io::Result<()> {
        match self {
            Way::Direct(direct) => direct.finish(Means { buffered: fd, pool }),
            _ => Ok(()),
        }
    }
}

/// Whether mapped pages can be given blocks before anything is stored there.
fn can_map(fd: &OwnedFd, filesystem: Filesystem) -> bool {
    filesystem.mapping_hazard().is_none() && sys::file::allocate(fd.as_fd(), 1).is_ok()
}
