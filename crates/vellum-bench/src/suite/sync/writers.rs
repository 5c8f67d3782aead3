//! The calls that get a piece into the file, and onto the device.

use std::fs::File;
use std::io::{self, IoSlice};
use std::os::unix::fs::FileExt;

use rustix::io::ReadWriteFlags;

use crate::error::{Context, Result};
use crate::queue::{UringQueue, WriteQueue};
use crate::sys::{self, FileMap};
use crate::ways::direct::AlignedBuffer;

/// Gets pieces into a file.
pub(super) trait Writer: Send {
    /// Writes a piece; it has reached the device on return, unless the way syncs once.
    fn write(&mut self, piece: &[u8], offset: u64) -> Result<()>;

    /// The last call of a way that syncs once.
    fn sync(&mut self) -> Result<()> {
        Ok(())
    }
}

/// The call that gets a piece onto the device after its `pwrite`.
#[derive(Clone, Copy)]
pub(super) enum Sync {
    /// `fsync`.
    All,
    /// `fdatasync`.
    Data,
    /// The `pwrite` itself, by how the file is open.
    ByWriting,
    /// One `fsync` for all pieces.
    InTheEnd,
}

impl Sync {
    fn after_piece(self, file: &File) -> Result<()> {
        match self {
            Sync::All => file.sync_all().trying("fsync"),
            Sync::Data => file.sync_data().trying("fdatasync"),
            Sync::ByWriting | Sync::InTheEnd => Ok(()),
        }
    }
}

pub(super) struct Plain {
    pub(super) file: File,
    pub(super) sync: Sync,
}

impl Writer for Plain {
    fn write(&mut self, piece: &[u8], offset: u64) -> Result<()> {
        self.file.write_all_at(piece, offset).trying("pwrite")?;
        self.sync.after_piece(&self.file)
    }

    fn sync(&mut self) -> Result<()> {
        self.file.sync_all().trying("fsync")
    }
}

pub(super) struct Direct {
    file: File,
    buffer: AlignedBuffer,
    sync: Sync,
}

impl Direct {
    pub(super) fn new(file: File, piece_bytes: usize, sync: Sync) -> Direct {
        Direct { file, buffer: AlignedBuffer::new(piece_bytes), sync }
    }
}

impl Writer for Direct {
    fn write(&mut self, piece: &[u8], offset: u64) -> Result<()> {
        self.buffer.as_mut_slice().copy_from_slice(piece);
        self.file.write_all_at(self.buffer.as_slice(), offset).trying("direct pwrite")?;
        self.sync.after_piece(&self.file)
    }
}

pub(super) struct Rwf {
    pub(super) file: File,
}

impl Writer for Rwf {
    fn write(&mut self, piece: &[u8], offset: u64) -> Result<()> {
        let slices = [IoSlice::new(piece)];
        let written = rustix::io::pwritev2(&self.file, &slices, offset, ReadWriteFlags::DSYNC);
        let whole = match written {
            Ok(written) if written == piece.len() => Ok(()),
            Ok(_) => Err(io::ErrorKind::WriteZero.into()),
            Err(error) => Err(io::Error::from(error)),
        };
        whole.trying("pwritev2 with RWF_DSYNC")
    }
}

pub(super) struct Range {
    pub(super) file: File,
}

impl Writer for Range {
    fn write(&mut self, piece: &[u8], offset: u64) -> Result<()> {
        self.file.write_all_at(piece, offset).trying("pwrite")?;
        let result = sys::write_back(&self.file, offset, piece.len() as u64);
        result.trying("sync_file_range")
    }
}

pub(super) struct Linked {
    queue: UringQueue,
}

impl Linked {
    /// # Errors
    ///
    /// This system has no io_uring, or none for us.
    pub(super) fn new(file: File, piece_bytes: usize) -> Result<Linked> {
        Ok(Linked { queue: UringQueue::new(file, 1, piece_bytes)? })
    }
}

impl Writer for Linked {
    fn write(&mut self, piece: &[u8], offset: u64) -> Result<()> {
        self.queue.buffer(0)[..piece.len()].copy_from_slice(piece);
        self.queue.write_and_sync(0, 0..piece.len(), offset)
    }
}

pub(super) struct Mapped {
    pub(super) map: FileMap,
}

impl Writer for Mapped {
    fn write(&mut self, piece: &[u8], offset: u64) -> Result<()> {
        self.map.store_and_sync(offset as usize, piece).trying("store and msync")
    }
}
