//! Table `create`: the cost of making a file of a size.
//!
//! Told as time, in all and for each GiB, never as a speed: calls that write nothing have none. How
//! much of the file has blocks then is told beside it, for a length alone costs next to nothing.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{FallocateFlags, fallocate};

use super::clock::once;
use super::config::Table;
use super::entry::{Entry, Job, Sample, Site};
use super::verify;
use crate::error::{Context, Result};
use crate::sys;
use crate::ways::direct::AlignedBuffer;

/// So many zeros are written at a time.
const PIECE_BYTES: usize = 1 << 20;

/// A call that makes a file of a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Create {
    PosixFallocate,
    Fallocate,
    KeepSize,
    ZeroRange,
    WriteZeroes,
    Ftruncate,
    Zeros,
    DirectZeros,
}

impl Create {
    const ALL: [Create; 8] = [
        Create::PosixFallocate,
        Create::Fallocate,
        Create::KeepSize,
        Create::ZeroRange,
        Create::WriteZeroes,
        Create::Ftruncate,
        Create::Zeros,
        Create::DirectZeros,
    ];

    fn as_str(self) -> &'static str {
        match self {
            Create::PosixFallocate => "posix_fallocate",
            Create::Fallocate => "fallocate",
            Create::KeepSize => "fallocate KEEP_SIZE",
            Create::ZeroRange => "fallocate ZERO_RANGE",
            Create::WriteZeroes => "fallocate WRITE_ZEROES",
            Create::Ftruncate => "ftruncate",
            Create::Zeros => "write zeros",
            Create::DirectZeros => "write zeros O_DIRECT",
        }
    }

    /// The name of the call alone, for its error.
    fn call(self) -> &'static str {
        match self {
            Create::PosixFallocate => "posix_fallocate",
            Create::Ftruncate => "ftruncate",
            Create::Zeros | Create::DirectZeros => "pwrite",
            _ => "fallocate",
        }
    }

    fn open(self, path: &Path) -> io::Result<File> {
        let flags = if self == Create::DirectZeros { libc::O_DIRECT } else { 0 };
        OpenOptions::new().read(true).write(true).create_new(true).custom_flags(flags).open(path)
    }

    fn make(self, file: &File, len: u64, zeros: &AlignedBuffer) -> io::Result<()> {
        let flags = match self {
            Create::PosixFallocate => return sys::posix_fallocate(file, len),
            Create::Ftruncate => return file.set_len(len),
            Create::Zeros | Create::DirectZeros => return write(file, len, zeros.as_slice()),
            Create::Fallocate => FallocateFlags::empty(),
            Create::KeepSize => FallocateFlags::KEEP_SIZE,
            Create::ZeroRange => FallocateFlags::ZERO_RANGE,
            Create::WriteZeroes => sys::WRITE_ZEROES,
        };
        Ok(fallocate(file, flags, 0, len)?)
    }
}

fn write(file: &File, len: u64, zeros: &[u8]) -> io::Result<()> {
    for offset in (0..len).step_by(zeros.len()) {
        let len = (len - offset).min(zeros.len() as u64) as usize;
        file.write_all_at(&zeros[..len], offset)?;
    }
    Ok(())
}

impl Job for Create {
    fn run(&self, site: &Site<'_>) -> Result<Sample> {
        let file = self.open(&site.file()).trying("create the file")?;
        let zeros = AlignedBuffer::new(PIECE_BYTES);
        let write = once(|| self.make(&file, site.bytes, &zeros).trying(self.call()))?;
        let sync = once(|| file.sync_all().trying("fsync"))?;
        let blocks = file.metadata().trying("fstat")?.blocks();
        Ok(Sample { allocated: (blocks * 512) as f64, ..Sample::new(0, write, sync) })
    }

    fn verify(&self, site: &Site<'_>) -> Result<()> {
        let path = site.file();
        verify::zeros(&path, if *self == Create::KeepSize { 0 } else { site.bytes })?;
        // A length alone promises no blocks.
        if *self == Create::Ftruncate { Ok(()) } else { verify::allocated(&path, site.bytes) }
    }
}

/// The cases of the table.
pub(super) fn entries() -> Vec<Entry> {
    let case = |create: Create| Entry::new(Table::Create, create).key("way", create.as_str());
    Create::ALL.into_iter().map(case).collect()
}
