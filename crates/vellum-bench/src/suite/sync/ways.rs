//! The ways to get pieces of a file onto the device, each piece for itself or all at once.
//!
//! | way | the file before the clock starts | each piece |
//! |---|---|---|
//! | `growing` | empty | `pwrite`, `fsync` |
//! | `overwrite` | written with zeros | `pwrite`, `fsync` |
//! | `fallocate` | allocated | `pwrite`, `fsync` |
//! | `fallocate-zero-range` | allocated, then `FALLOC_FL_ZERO_RANGE` | `pwrite`, `fsync` |
//! | `keep-size` | allocated with `FALLOC_FL_KEEP_SIZE` | `pwrite`, `fsync` |
//! | `write-zeroes` | `FALLOC_FL_WRITE_ZEROES` (Linux 6.17) | `pwrite`, `fsync` |
//! | `o-dsync` | written with zeros | `pwrite` with `O_DSYNC` |
//! | `o-direct` | written with zeros | `pwrite` with `O_DIRECT`, `fsync` |
//! | `rwf-dsync` | written with zeros | `pwritev2` with `RWF_DSYNC` |
//! | `mmap-msync` | written with zeros | a store, `msync` |
//! | `one-write` | empty | all in one `pwrite`, one `fsync` |
//! | `one-sync` | empty | `pwrite`; one `fsync` in the end |

use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::ReadWriteFlags;

use crate::names::named;
use crate::suite::commit::write_zeros;
use crate::sys::{self, FileMap};
use crate::ways::direct::AlignedBuffer;

named! {
    /// The name of a way.
    #[non_exhaustive]
    pub enum SyncWay, "is not a way to sync" {
        /// The file grows by each piece.
        Growing = "growing",
        /// Onto zeros that were written before.
        Overwrite = "overwrite",
        /// Into blocks that are allocated, but not written.
        Fallocate = "fallocate",
        /// The same, after a call that makes them zero without writing.
        ZeroRange = "fallocate-zero-range",
        /// Into blocks allocated beyond the end of the file, which grows.
        KeepSize = "keep-size",
        /// Onto zeros that the device wrote.
        WriteZeroes = "write-zeroes",
        /// `O_DSYNC`, onto written zeros.
        ODsync = "o-dsync",
        /// `O_DIRECT`, onto written zeros.
        ODirect = "o-direct",
        /// `RWF_DSYNC`, onto written zeros.
        RwfDsync = "rwf-dsync",
        /// A store into a mapping and `msync`, onto written zeros.
        MmapMsync = "mmap-msync",
        /// All pieces in one write, with one sync.
        OneWrite = "one-write",
        /// All pieces, then one sync.
        OneSync = "one-sync",
    }
}

impl SyncWay {
    /// Is there one sync for all pieces?
    pub(super) fn syncs_once(self) -> bool {
        matches!(self, SyncWay::OneWrite | SyncWay::OneSync)
    }

    /// Makes the file, as it is before the clock starts, and syncs it.
    pub(super) fn prepare(self, path: &Path, bytes: u64) -> io::Result<()> {
        let file = File::create_new(path)?;
        match self {
            SyncWay::Growing | SyncWay::OneWrite | SyncWay::OneSync => {}
            SyncWay::Fallocate => fallocate(&file, FallocateFlags::empty(), 0, bytes)?,
            SyncWay::ZeroRange => {
                fallocate(&file, FallocateFlags::empty(), 0, bytes)?;
                fallocate(&file, FallocateFlags::ZERO_RANGE, 0, bytes)?;
            }
            SyncWay::KeepSize => fallocate(&file, FallocateFlags::KEEP_SIZE, 0, bytes)?,
            SyncWay::WriteZeroes => fallocate(&file, sys::WRITE_ZEROES, 0, bytes)?,
            SyncWay::Overwrite
            | SyncWay::ODsync
            | SyncWay::ODirect
            | SyncWay::RwfDsync
            | SyncWay::MmapMsync => write_zeros(&file, bytes)?,
        }
        file.sync_all()
    }

    /// Opens the file for pieces of `piece_bytes`.
    pub(super) fn open(
        self,
        path: &Path,
        bytes: u64,
        piece_bytes: usize,
    ) -> io::Result<Box<dyn Writer>> {
        let flags = match self {
            SyncWay::ODsync => libc::O_DSYNC,
            SyncWay::ODirect => libc::O_DIRECT,
            _ => 0,
        };
        let file = OpenOptions::new().read(true).write(true).custom_flags(flags).open(path)?;
        Ok(match self {
            SyncWay::ODirect => Box::new(Direct { file, buffer: AlignedBuffer::new(piece_bytes) }),
            SyncWay::RwfDsync => Box::new(Rwf { file }),
            SyncWay::MmapMsync => Box::new(Mapped { map: FileMap::new(&file, bytes as usize)? }),
            SyncWay::ODsync | SyncWay::OneWrite | SyncWay::OneSync => {
                Box::new(Plain { file, syncs_each: false })
            }
            _ => Box::new(Plain { file, syncs_each: true }),
        })
    }
}

/// Gets pieces into a file.
pub(super) trait Writer {
    /// Writes a piece; it has reached the device on return, unless the way syncs once.
    fn write(&mut self, piece: &[u8], offset: u64) -> io::Result<()>;

    /// What a way that syncs once does in the end.
    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Plain {
    file: File,
    syncs_each: bool,
}

impl Writer for Plain {
    fn write(&mut self, piece: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(piece, offset)?;
        if self.syncs_each { self.file.sync_all() } else { Ok(()) }
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_all()
    }
}

struct Direct {
    file: File,
    buffer: AlignedBuffer,
}

impl Writer for Direct {
    fn write(&mut self, piece: &[u8], offset: u64) -> io::Result<()> {
        self.buffer.as_mut_slice().copy_from_slice(piece);
        self.file.write_all_at(self.buffer.as_slice(), offset)?;
        self.file.sync_all()
    }
}

struct Rwf {
    file: File,
}

impl Writer for Rwf {
    fn write(&mut self, piece: &[u8], offset: u64) -> io::Result<()> {
        let slices = [IoSlice::new(piece)];
        let written = rustix::io::pwritev2(&self.file, &slices, offset, ReadWriteFlags::DSYNC)?;
        if written == piece.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
    }
}

struct Mapped {
    map: FileMap,
}

impl Writer for Mapped {
    fn write(&mut self, piece: &[u8], offset: u64) -> io::Result<()> {
        self.map.store_and_sync(offset as usize, piece)
    }
}
