//! `O_DIRECT`: past the page cache, each record in aligned blocks of its own.
//!
//! The kernel takes only aligned positions and whole blocks, so a process takes the next free
//! blocks by moving a cursor that all processes share, and writes there; a record is rounded up to
//! whole blocks. **The padding is the price**: a record of one byte fills a block. A record that is
//! read back is checked with its padding, which must be zero.
//!
//! An append of this kind has reached the device when it returns (though perhaps not for good:
//! there is no flush), which no other way here does. It answers another question than the others.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) use vellum_sys::AlignedBuffer;

use crate::error::{Context, Result};
use crate::setting::Setting;
use crate::shared::Shared;
use crate::ways::plain::{read_records, whole};
use crate::ways::{Appender, Prepared, Way};

/// Rounded up to this: the block of the usual filesystems. A device's own block may be smaller,
/// but then every write would have the filesystem complete a block of its own.
pub(crate) const BLOCK_BYTES: usize = 4096;

pub(crate) struct Direct;

impl Way for Direct {
    fn probe(&self, dir: &Path) -> std::result::Result<(), String> {
        probe(dir, 0)
    }

    fn disk_bytes(&self, setting: &Setting) -> u64 {
        setting.total_records().saturating_mul(rounded(setting.bytes) as u64)
    }

    fn prepare(&self, dir: &Path, setting: &Setting) -> Result<Box<dyn Prepared>> {
        let path = dir.join("log");
        File::create_new(&path).context(|| format!("create {}", path.display()))?;
        let cursor = Rc::new(Shared::new(1)?);
        Ok(Box::new(BlockFile { path, bytes: setting.bytes, cursor }))
    }
}

struct BlockFile {
    path: PathBuf,
    bytes: usize,
    /// Where the next free block begins. Shared with the children by fork, with appenders in this
    /// process (in tests) by the `Rc`.
    cursor: Rc<Shared<AtomicU64>>,
}

impl Prepared for BlockFile {
    fn open(&self, _process: u32) -> Result<Box<dyn Appender>> {
        let file = open_direct(&self.path, 0)
            .context(|| format!("open {} with O_DIRECT", self.path.display()))?;
        let buffer = AlignedBuffer::new(rounded(self.bytes));
        Ok(Box::new(DirectAppender { file, buffer, cursor: Rc::clone(&self.cursor) }))
    }

    fn read_back(&self, visit: &mut dyn FnMut(&[u8])) -> Result<()> {
        read_padded(&self.path, self.bytes, visit)
    }
}

struct DirectAppender {
    file: File,
    /// The padding in it is zero and stays so, for all records have the same length.
    buffer: AlignedBuffer,
    cursor: Rc<Shared<AtomicU64>>,
}

impl Appender for DirectAppender {
    #[inline]
    fn append(&mut self, record: &[u8]) -> Result<()> {
        let slot = self.buffer.as_mut_slice();
        slot[..record.len()].copy_from_slice(record);
        // Only the blocks are assigned here; the data goes through the file.
        let offset = self.cursor[0].fetch_add(slot.len() as u64, Ordering::Relaxed);
        let written = self.file.write_at(slot, offset).context(|| "pwrite with O_DIRECT")?;
        whole("pwrite with O_DIRECT", written, slot.len())
    }
}

/// Opens an existing file with `O_DIRECT` and `more_flags`.
pub(crate) fn open_direct(path: &Path, more_flags: i32) -> std::io::Result<File> {
    OpenOptions::new().write(true).custom_flags(libc::O_DIRECT | more_flags).open(path)
}

/// `Err` with the reason if such files do not work in the directory `dir`.
pub(crate) fn probe(dir: &Path, more_flags: i32) -> std::result::Result<(), String> {
    let path = dir.join("probe");
    let block = AlignedBuffer::new(BLOCK_BYTES);
    let written = File::create_new(&path)
        .and_then(|_| open_direct(&path, more_flags)?.write_at(block.as_slice(), 0));
    let _ = std::fs::remove_file(&path);
    match written {
        Ok(BLOCK_BYTES) => Ok(()),
        Ok(_) => Err(format!("O_DIRECT does not write a block of {BLOCK_BYTES} bytes here")),
        Err(error) => Err(format!("O_DIRECT does not work here: {error}")),
    }
}

/// Shows `visit` the records of a file in which each has whole blocks, without their padding.
pub(crate) fn read_padded(path: &Path, bytes: usize, visit: &mut dyn FnMut(&[u8])) -> Result<()> {
    read_records(path, u64::MAX, rounded(bytes), &mut |slot| {
        let (record, padding) = slot.split_at(bytes.min(slot.len()));
        let is_padded = padding.iter().all(|byte| *byte == 0);
        // A slot with dirt in its padding is shown whole, which is no record's length.
        visit(if is_padded { record } else { slot });
    })
}

fn rounded(bytes: usize) -> usize {
    bytes.next_multiple_of(BLOCK_BYTES)
}
