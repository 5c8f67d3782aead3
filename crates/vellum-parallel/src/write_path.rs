//! The write path: how bytes get into the file, chosen once by the filesystem and the options.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Mutex;

use rustix::fs::OFlags;
use rustix::io;
use vellum::internal;
use vellum_sys::{self as sys, filesystem::Filesystem};

use super::buffer::Pool;
use super::direct::{Direct, Means};
use super::mapped::Mapped;
use super::preallocation::Preallocation;
use super::{Method, lock};

/// How bytes get into the file.
#[derive(Debug)]
pub(super) enum WritePath {
    Buffered(Buffered),
    Direct(Direct),
    Mapped(Mapped),
}

/// `pwrite`, through the page cache.
#[derive(Debug)]
pub(super) struct Buffered {
    /// Where it is faster into space that is allocated: on ext4 twice as fast.
    preallocation: Option<Preallocation>,
    /// Held for each write where the kernel would hold a lock of its own. That lock spins, also
    /// where threads have to share processors.
    turn: Option<Mutex<()>>,
}

impl Buffered {
    fn on(filesystem: Filesystem, len: Option<u64>) -> Buffered {
        use Filesystem::{Btrfs, Ext, Tmpfs, Xfs};
        let takes_turns = matches!(filesystem, Btrfs | Ext | Tmpfs | Xfs);
        // XFS and btrfs write faster into space that they allocate when pages are written back.
        let allocates = matches!(filesystem, Ext | Tmpfs);
        Buffered {
            preallocation: allocates.then(|| Preallocation::whole(len)),
            turn: takes_turns.then(Mutex::default),
        }
    }

    fn write(&self, fd: BorrowedFd<'_>, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if let Some(preallocation) = &self.preallocation {
            preallocation.ready(fd, offset, offset + bytes.len() as u64)?;
        }
        let _turn = self.turn.as_ref().map(lock);
        sys::file::write_all_at(fd, bytes, offset)
    }
}

impl WritePath {
    /// Chooses for the new file at `path`, open as `fd`, which will have `len` bytes if that is
    /// known.
    pub(super) fn choose(
        fd: &OwnedFd,
        path: &Path,
        len: Option<u64>,
        method: Method,
        sync: bool,
    ) -> io::Result<WritePath> {
        use Filesystem::{Btrfs, Tmpfs};
        let filesystem = Filesystem::of(fd)?;
        let method = match method {
            Method::Auto => internal::knowledge::method(filesystem, sync),
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
                    return Ok(WritePath::Direct(Direct::new(direct, len)?));
                }
            }
            Method::Mapped if can_map(fd, filesystem) => {
                return Ok(WritePath::Mapped(Mapped::new(len, filesystem == Tmpfs)));
            }
            _ => {}
        }
        Ok(WritePath::Buffered(Buffered::on(filesystem, len)))
    }

    /// The method in use.
    pub(super) fn method(&self) -> Method {
        match self {
            WritePath::Direct(direct) if !direct.is_refused() => Method::Direct,
            WritePath::Mapped(_) => Method::Mapped,
            _ => Method::Buffered,
        }
    }

    /// Prepares a file of known length, at least one byte, as far as that can be done ahead.
    pub(super) fn prepare(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        match self {
            WritePath::Direct(direct) => direct.preallocation.prepare(fd),
            WritePath::Mapped(mapped) => mapped.preallocation.prepare(fd),
            WritePath::Buffered(buffered) => match &buffered.preallocation {
                Some(preallocation) => preallocation.prepare(fd),
                None => Ok(()),
            },
        }
    }

    /// Writes `bytes` at `offset`, or keeps them until the neighbouring bytes come.
    pub(super) fn write(
        &self,
        fd: BorrowedFd<'_>,
        pool: &Pool,
        offset: u64,
        bytes: &[u8],
    ) -> io::Result<()> {
        sys::file::check_size_limit(offset.saturating_add(bytes.len() as u64))?;
        match self {
            WritePath::Buffered(buffered) => buffered.write(fd, offset, bytes),
            WritePath::Direct(direct) => direct.write(Means { buffered: fd, pool }, offset, bytes),
            WritePath::Mapped(mapped) => mapped.write(fd, offset, bytes),
        }
    }

    /// Writes what is still kept.
    pub(super) fn finish(&self, fd: BorrowedFd<'_>, pool: &Pool) -> io::Result<()> {
        match self {
            WritePath::Direct(direct) => direct.finish(Means { buffered: fd, pool }),
            _ => Ok(()),
        }
    }
}

/// Whether mapped pages can be given blocks before anything is stored there.
fn can_map(fd: &OwnedFd, filesystem: Filesystem) -> bool {
    filesystem.mapping_hazard().is_none() && sys::file::allocate(fd.as_fd(), 1).is_ok()
}
