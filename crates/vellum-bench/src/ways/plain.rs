//! The common part of the ways with a plain file: one file, records end to end.
//!
//! They append with `O_APPEND` in one call for each record. The kernel takes the end of the file
//! and writes under one lock, so records of several processes don't mix; a call that wrote only
//! part of a record has torn it, and counts as failed.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::error::{Context, Error, Result};
use crate::setting::Setting;
use crate::verify::Splitter;
use crate::ways::{Appender, Prepared};

/// Read in pieces of this size; large enough that the calls don't matter.
const READ_BYTES: usize = 1 << 20;

/// Opens the file at a path for one process; records are at most so many bytes long.
pub(crate) type Open = fn(&Path, usize) -> Result<Box<dyn Appender>>;

/// An empty plain file that `open` appends to.
pub(crate) struct PlainFile {
    path: PathBuf,
    bytes: usize,
    open: Open,
}

impl PlainFile {
    /// Creates the file `log` in `dir`.
    pub(crate) fn create(dir: &Path, setting: &Setting, open: Open) -> Result<Box<dyn Prepared>> {
        let path = dir.join("log");
        File::create_new(&path).context(|| format!("create {}", path.display()))?;
        Ok(Box::new(PlainFile { path, bytes: setting.bytes, open }))
    }
}

impl Prepared for PlainFile {
    fn open(&self, _process: u32) -> Result<Box<dyn Appender>> {
        (self.open)(&self.path, self.bytes)
    }

    fn read_back(&self, visit: &mut dyn FnMut(&[u8])) -> Result<()> {
        read_records(&self.path, u64::MAX, self.bytes, visit)
    }
}

/// Shows `visit` the records of `bytes` in the first `limit` bytes of the file at `path`.
pub(crate) fn read_records(
    path: &Path,
    limit: u64,
    bytes: usize,
    visit: &mut dyn FnMut(&[u8]),
) -> Result<()> {
    let mut splitter = Splitter::new(bytes);
    read_pieces(path, limit, &mut |piece| splitter.feed(piece, visit))?;
    splitter.finish(visit);
    Ok(())
}

/// Shows `visit` the first `limit` bytes of the file at `path`, or all if there are fewer.
pub(crate) fn read_pieces(path: &Path, limit: u64, visit: &mut dyn FnMut(&[u8])) -> Result<()> {
    let file = File::open(path).context(|| format!("open {}", path.display()))?;
    let mut file = file.take(limit);
    let mut piece = vec![0; READ_BYTES];
    loop {
        let len = file.read(&mut piece).context(|| format!("read {}", path.display()))?;
        if len == 0 {
            return Ok(());
        }
        visit(&piece[..len]);
    }
}

/// Opens an existing file to append to it.
pub(crate) fn open_append(path: &Path) -> Result<File> {
    OpenOptions::new().append(true).open(path).context(|| format!("open {}", path.display()))
}

/// A call wrote `written` bytes of a record of `len`: all of them, or the record is torn.
#[inline]
pub(crate) fn whole(call: &str, written: usize, len: usize) -> Result<()> {
    if written == len {
        return Ok(());
    }
    Err(torn(call, written, len))
}

#[cold]
fn torn(call: &str, written: usize, len: usize) -> Error {
    Error::failed(format!("{call} wrote {written} bytes of a record of {len}"))
}
