//! One plain file that all threads share: `pwrite` at the next free place and `fdatasync`, by every
//! thread for itself.
//!
//! | case | the file before the clock starts | what a sync has to write |
//! |---|---|---|
//! | `bare-append` | empty, and grows | data, its blocks, the length |
//! | `bare-fallocate` | its blocks are allocated, not written | data, that its blocks are written |
//! | `bare-overwrite` | written with zeros and synced | data |

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{FallocateFlags, fallocate};

use super::contender::{Cell, Committer, Contender, Prepared, Session};
use crate::error::{Context, Result};
use crate::shared::Shared;
use crate::ways::plain::{read_records, whole};

/// Zeros are written in pieces of this size.
const ZEROS_BYTES: usize = 1 << 20;

/// The preparation of the file before the clock starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bare {
    Append,
    Fallocate,
    Overwrite,
}

impl Contender for Bare {
    fn name(&self) -> &str {
        match self {
            Bare::Append => "bare-append",
            Bare::Fallocate => "bare-fallocate",
            Bare::Overwrite => "bare-overwrite",
        }
    }

    fn is_prepared(&self) -> bool {
        *self != Bare::Append
    }

    fn probe(&self, dir: &Path, _cell: &Cell) -> std::result::Result<(), String> {
        if *self != Bare::Fallocate {
            return Ok(());
        }
        let file = File::create_new(dir.join("probe")).map_err(|error| error.to_string())?;
        fallocate(&file, FallocateFlags::empty(), 0, 4096)
            .map_err(|error| format!("fallocate does not work here: {error}"))
    }

    fn prepare(&self, dir: &Path, cell: &Cell) -> Result<Box<dyn Prepared>> {
        let path = dir.join("log");
        let file = File::create_new(&path).context(|| format!("create {}", path.display()))?;
        match self {
            Bare::Append => {}
            Bare::Fallocate => fallocate(&file, FallocateFlags::empty(), 0, cell.bytes_max(1))
                .context(|| format!("allocate {}", path.display()))?,
            Bare::Overwrite => write_zeros(&file, cell.bytes_max(1))
                .context(|| format!("write zeros to {}", path.display()))?,
        }
        file.sync_all().context(|| format!("sync {}", path.display()))?;
        let words = Arc::new(Shared::new(1)?);
        let renews = *self == Bare::Overwrite;
        Ok(Box::new(BareFile { path, bytes: cell.bytes, renews, words }))
    }
}

/// Writes `bytes` zeros and syncs them.
pub(crate) fn write_zeros(file: &File, bytes: u64) -> std::io::Result<()> {
    let zeros = vec![0; ZEROS_BYTES];
    let mut offset = 0;
    while offset < bytes {
        let len = (bytes - offset).min(ZEROS_BYTES as u64) as usize;
        file.write_all_at(&zeros[..len], offset)?;
        offset += len as u64;
    }
    file.sync_all()
}

/// Words that all threads of all processes share.
#[derive(zerocopy::FromZeros)]
#[repr(C, align(128))]
struct Words {
    /// Where the next record goes.
    next: AtomicU64,
    /// Syncs of the sessions that have ended.
    syncs: AtomicU64,
}

struct BareFile {
    path: PathBuf,
    bytes: usize,
    renews: bool,
    words: Arc<Shared<Words>>,
}

impl Prepared for BareFile {
    fn open(&self) -> Result<Box<dyn Committer>> {
        let file = OpenOptions::new().write(true).open(&self.path);
        let file = file.context(|| format!("open {}", self.path.display()))?;
        Ok(Box::new(BareWriter { file, words: Arc::clone(&self.words) }))
    }

    fn renew(&mut self) -> Result<bool> {
        self.words[0].next.store(0, Ordering::Relaxed);
        Ok(self.renews)
    }

    fn syncs(&self) -> Result<Option<u64>> {
        Ok(Some(self.words[0].syncs.load(Ordering::Relaxed)))
    }

    fn read_back(&self, visit: &mut dyn FnMut(&[u8])) -> Result<()> {
        let end = self.words[0].next.load(Ordering::Relaxed);
        read_records(&self.path, end, self.bytes, visit)
    }
}

struct BareWriter {
    file: File,
    words: Arc<Shared<Words>>,
}

impl Committer for BareWriter {
    fn session(&self, _writer: u32) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(BareSession { writer: self, syncs: 0 }))
    }
}

struct BareSession<'a> {
    writer: &'a BareWriter,
    syncs: u64,
}

impl Session for BareSession<'_> {
    fn commit(&mut self, record: &[u8]) -> Result<()> {
        let BareWriter { file, words } = self.writer;
        // Only the places are assigned here; the data goes through the file.
        let offset = words[0].next.fetch_add(record.len() as u64, Ordering::Relaxed);
        let written = file.write_at(record, offset).context(|| "pwrite")?;
        whole("pwrite", written, record.len())?;
        rustix::fs::fdatasync(file).context(|| "fdatasync")?;
        self.syncs += 1;
        Ok(())
    }
}

impl Drop for BareSession<'_> {
    fn drop(&mut self) {
        self.writer.words[0].syncs.fetch_add(self.syncs, Ordering::Relaxed);
    }
}
