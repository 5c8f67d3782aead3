//! Through the page cache, past it, or through it without leaving anything there.

use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use rustix::io::{Errno, ReadWriteFlags};

/// `RWF_DONTCACHE` (Linux 6.14).
const DONTCACHE: ReadWriteFlags = ReadWriteFlags::from_bits_retain(0x80);

/// The relation of a write to the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cache {
    /// It ends there.
    Buffered,
    /// It goes past.
    Direct,
    /// It goes through, and is dropped once it has reached the device.
    Dropped,
}

impl Cache {
    /// Added to the name of a way.
    pub(super) fn suffix(self) -> &'static str {
        match self {
            Cache::Buffered => "",
            Cache::Direct => " O_DIRECT",
            Cache::Dropped => " DONTCACHE",
        }
    }

    /// Opens a file that exists.
    pub(super) fn open(self, path: &Path) -> io::Result<File> {
        let flags = if self == Cache::Direct { libc::O_DIRECT } else { 0 };
        OpenOptions::new().write(true).custom_flags(flags).open(path)
    }

    /// Writes all of `piece`.
    pub(super) fn write_at(self, file: &File, piece: &[u8], offset: u64) -> io::Result<()> {
        if self != Cache::Dropped {
            return file.write_all_at(piece, offset);
        }
        let mut done = 0;
        while done < piece.len() {
            let slices = [IoSlice::new(&piece[done..])];
            match rustix::io::pwritev2(file, &slices, offset + done as u64, DONTCACHE) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => done += written,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}
