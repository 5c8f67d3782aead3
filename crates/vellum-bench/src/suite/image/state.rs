//! The states that an image is in before the first write, and the effect of a first write to a
//! cluster.
//!
//! | state | the file before the clock starts | the first write to a cluster of 64 KiB |
//! |---|---|---|
//! | `off` | sparse | `FALLOC_FL_ZERO_RANGE` of the cluster, then the block |
//! | `off-without-zero-range` | sparse | the whole cluster: the block, and zeros around it |
//! | `metadata` | sparse | the block |
//! | `falloc` | allocated | the block |
//! | `full` | written with zeros, past the page cache | the block |
//! | `extsize-64k`, `extsize-1m` | sparse, allocated by the filesystem in such pieces | the block |
//! | `qcow2-off` … `qcow2-full` | as `qemu-img` makes it with that `preallocation` | what QEMU does |
//! | `qemu-raw` | sparse | the block, by QEMU |
//!
//! The first five are what QEMU does for a qcow2 image of that `preallocation`, without the tables
//! that such an image also has. The extent sizes are hints that only XFS takes. QEMU itself makes
//! and writes the last five ([`qemu`](super::qemu)).

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{FallocateFlags, fallocate};

use super::qemu;
use crate::error::{Context, Error, Result};
use crate::names::named;
use crate::sys;
use crate::ways::direct::AlignedBuffer;

/// Zeros are written in pieces of this size.
const ZEROS_BYTES: u64 = 4 << 20;

named! {
    /// How the space of an image was allocated.
    #[non_exhaustive]
    pub enum ImageState, "is not a state of an image" {
        /// By clusters, each with a call that makes it zero before it is first written.
        Off = "off",
        /// By clusters, each written whole when it is first written.
        OffWithoutZeroRange = "off-without-zero-range",
        /// By the filesystem, block by block, as they are written.
        Metadata = "metadata",
        /// All of it, by `fallocate`.
        Falloc = "falloc",
        /// All of it, by writing zeros.
        Full = "full",
        /// By the filesystem, in pieces of 64 KiB.
        Extsize64K = "extsize-64k",
        /// By the filesystem, in pieces of 1 MiB.
        Extsize1M = "extsize-1m",
        /// qcow2 without preallocation, by QEMU.
        Qcow2Off = "qcow2-off",
        /// qcow2 whose tables are there, by QEMU.
        Qcow2Metadata = "qcow2-metadata",
        /// qcow2 that is allocated, by QEMU.
        Qcow2Falloc = "qcow2-falloc",
        /// qcow2 that is written with zeros, by QEMU.
        Qcow2Full = "qcow2-full",
        /// A raw file, by QEMU: the cost of its server.
        QemuRaw = "qemu-raw",
    }
}

/// How many of all are written by ourselves; they are the first.
const OURS: usize = 7;

/// The effect of the first write to a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FirstTouch {
    /// Nothing but the block.
    Plain,
    /// The cluster is made zero, then the block is written.
    ZeroRange,
    /// The cluster is written with zeros around the block.
    WholeCluster,
}

impl ImageState {
    /// Those that we write ourselves, which is the default.
    pub fn ours() -> &'static [ImageState] {
        &ImageState::ALL[..OURS]
    }

    /// Does QEMU make and write it?
    pub(super) fn is_of_qemu(self) -> bool {
        self.preallocation().is_some() || self == ImageState::QemuRaw
    }

    /// What `qemu-img` is told, of a qcow2 image.
    pub(super) fn preallocation(self) -> Option<&'static str> {
        self.as_str().strip_prefix("qcow2-")
    }

    /// The baseline of other states like it.
    pub(super) fn baseline(self) -> ImageState {
        if self.is_of_qemu() { ImageState::Qcow2Metadata } else { ImageState::Metadata }
    }

    pub(super) fn first_touch(self) -> FirstTouch {
        match self {
            ImageState::Off => FirstTouch::ZeroRange,
            ImageState::OffWithoutZeroRange => FirstTouch::WholeCluster,
            _ => FirstTouch::Plain,
        }
    }

    /// Makes the image, as it is before the clock starts, and syncs it.
    pub(super) fn make(self, path: &Path, bytes: u64) -> Result<()> {
        if self.is_of_qemu() {
            return qemu::make(self, path, bytes);
        }
        let file = File::create_new(path).context(|| "create the image")?;
        match self {
            ImageState::Falloc => {
                fallocate(&file, FallocateFlags::empty(), 0, bytes).trying("fallocate")?
            }
            ImageState::Full => write_zeros(path, bytes)?,
            ImageState::Extsize64K => hint(&file, 64 << 10, bytes)?,
            ImageState::Extsize1M => hint(&file, 1 << 20, bytes)?,
            _ => lengthen(&file, bytes)?,
        }
        file.sync_all().context(|| "sync the image")
    }
}

fn lengthen(file: &File, bytes: u64) -> Result<()> {
    file.set_len(bytes).context(|| "lengthen the image")
}

/// The hint is for clusters that are not allocated yet, so it comes first.
fn hint(file: &File, hint_bytes: u32, bytes: u64) -> Result<()> {
    sys::set_extent_size_hint(file, hint_bytes).trying("set an extent size hint")?;
    lengthen(file, bytes)
}

/// Past the page cache, so that no write has to throw a page out of it later.
fn write_zeros(path: &Path, bytes: u64) -> Result<()> {
    let flags = libc::O_DIRECT;
    let file = OpenOptions::new().write(true).custom_flags(flags).open(path);
    let file = file.trying("open with O_DIRECT")?;
    let zeros = AlignedBuffer::new(ZEROS_BYTES as usize);
    let mut offset = 0;
    while offset < bytes {
        let len = (bytes - offset).min(ZEROS_BYTES) as usize;
        match file.write_at(&zeros.as_slice()[..len], offset) {
            Ok(0) => return Err(Error::failed("write zeros: nothing was written")),
            Ok(written) => offset += written as u64,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Error::os_or_unsupported("write zeros", error)),
        }
    }
    Ok(())
}
