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
//! | `fdatasync` | written with zeros | `pwrite`, `fdatasync` |
//! | `o-sync` | written with zeros | `pwrite` with `O_SYNC` |
//! | `o-dsync` | written with zeros | `pwrite` with `O_DSYNC` |
//! | `rwf-dsync` | written with zeros | `pwritev2` with `RWF_DSYNC` |
//! | `o-direct` | written with zeros | `pwrite` with `O_DIRECT`, `fsync` |
//! | `o-direct-dsync` | written with zeros | `pwrite` with `O_DIRECT` and `O_DSYNC`, as a staged log commits |
//! | `io-uring-fdatasync` | written with zeros | a write and an `fdatasync` linked to it, in one `io_uring_enter` |
//! | `mmap-msync` | written with zeros | a store, `msync` |
//! | `sync-file-range` | written with zeros | `pwrite`, `sync_file_range`: it promises nothing after a power cut |
//! | `one-write` | empty | all in one `pwrite`, one `fsync` |
//! | `one-sync` | empty | `pwrite`; one `fsync` in the end |
//!
//! With several threads each writes a share of its own, from one end to the other. Then `one-write`
//! and `one-sync` sync once for each thread.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{FallocateFlags, fallocate};

use super::writers::{Direct, Linked, Mapped, Plain, Range, Rwf, Sync, Writer};
use crate::error::{Context, Result};
use crate::names::named;
use crate::suite::commit::write_zeros;
use crate::sys::{self, FileMap};

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
        /// `fdatasync` instead of `fsync`, onto written zeros.
        Fdatasync = "fdatasync",
        /// `O_SYNC`, onto written zeros.
        OSync = "o-sync",
        /// `O_DSYNC`, onto written zeros.
        ODsync = "o-dsync",
        /// `RWF_DSYNC`, onto written zeros.
        RwfDsync = "rwf-dsync",
        /// `O_DIRECT`, onto written zeros.
        ODirect = "o-direct",
        /// `O_DIRECT` and `O_DSYNC`, onto written zeros: as a staged log commits.
        ODirectDsync = "o-direct-dsync",
        /// A write and a linked `fdatasync` by io_uring, onto written zeros.
        UringFdatasync = "io-uring-fdatasync",
        /// A store into a mapping and `msync`, onto written zeros.
        MmapMsync = "mmap-msync",
        /// `sync_file_range`, onto written zeros: it promises nothing after a power cut.
        SyncFileRange = "sync-file-range",
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
            _ => write_zeros(&file, bytes)?,
        }
        file.sync_all()
    }

    /// Opens the file of so many bytes for pieces of `piece_bytes`.
    pub(super) fn open(
        self,
        path: &Path,
        bytes: u64,
        piece_bytes: usize,
    ) -> Result<Box<dyn Writer>> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).custom_flags(self.open_flags()).open(path);
        let file = file.trying("open")?;
        Ok(match self {
            SyncWay::ODirect => Box::new(Direct::new(file, piece_bytes, Sync::All)),
            SyncWay::ODirectDsync => Box::new(Direct::new(file, piece_bytes, Sync::ByWriting)),
            SyncWay::UringFdatasync => Box::new(Linked::new(file, piece_bytes)?),
            SyncWay::RwfDsync => Box::new(Rwf { file }),
            SyncWay::SyncFileRange => Box::new(Range { file }),
            SyncWay::MmapMsync => {
                let map = FileMap::new(&file, bytes as usize).trying("map")?;
                Box::new(Mapped { map })
            }
            _ => Box::new(Plain { file, sync: self.sync_of_each() }),
        })
    }

    fn open_flags(self) -> libc::c_int {
        match self {
            SyncWay::OSync => libc::O_SYNC,
            SyncWay::ODsync => libc::O_DSYNC,
            SyncWay::ODirect => libc::O_DIRECT,
            SyncWay::ODirectDsync => libc::O_DIRECT | libc::O_DSYNC,
            _ => 0,
        }
    }

    /// The sync after a `pwrite` of a piece.
    fn sync_of_each(self) -> Sync {
        match self {
            SyncWay::Fdatasync => Sync::Data,
            SyncWay::OSync | SyncWay::ODsync => Sync::ByWriting,
            way if way.syncs_once() => Sync::InTheEnd,
            _ => Sync::All,
        }
    }
}
