//! `direct-dsync`, the limit: every thread overwrites written blocks of its own with one
//! `O_DIRECT | O_DSYNC` write for each commit. No log at all.
//!
//! A record is rounded up to whole blocks. Each thread goes round and round in a ring of slots, so
//! only its newest records are left to be verified.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::bare::write_zeros;
use super::contender::{Cell, Committer, Contender, Prepared, Session};
use crate::error::{Context, Result};
use crate::shared::Shared;
use crate::ways::direct::{AlignedBuffer, BLOCK_BYTES, open_direct, probe, read_padded};
use crate::ways::plain::whole;

/// All rings together, unless that left less than [`SLOTS_MIN`] to one.
const RINGS_BYTES: usize = 32 << 20;
const SLOTS_MIN: usize = 4;
const SLOTS_MAX: usize = 1024;

pub(super) struct Direct;

impl Contender for Direct {
    fn name(&self) -> &str {
        "direct-dsync"
    }

    fn is_prepared(&self) -> bool {
        true
    }

    fn probe(&self, dir: &Path, _cell: &Cell) -> std::result::Result<(), String> {
        probe(dir, libc::O_DSYNC)
    }

    fn prepare(&self, dir: &Path, cell: &Cell) -> Result<Box<dyn Prepared>> {
        let slot_bytes = cell.bytes.next_multiple_of(BLOCK_BYTES);
        let writers = cell.writers() as usize;
        let slots = (RINGS_BYTES / writers / slot_bytes).clamp(SLOTS_MIN, SLOTS_MAX);
        let path = dir.join("log");
        let file = File::create_new(&path).context(|| format!("create {}", path.display()))?;
        write_zeros(&file, (writers * slots * slot_bytes) as u64)
            .context(|| format!("write zeros to {}", path.display()))?;
        let writes = Arc::new(Shared::new(1)?);
        Ok(Box::new(Rings { path, bytes: cell.bytes, slot_bytes, slots, writes }))
    }
}

/// A file with a ring of slots for each thread.
struct Rings {
    path: PathBuf,
    bytes: usize,
    slot_bytes: usize,
    slots: usize,
    /// Writes of the sessions that have ended.
    writes: Arc<Shared<AtomicU64>>,
}

impl Prepared for Rings {
    fn open(&self) -> Result<Box<dyn Committer>> {
        let file = open_direct(&self.path, libc::O_DSYNC)
            .context(|| format!("open {} with O_DIRECT and O_DSYNC", self.path.display()))?;
        let (slot_bytes, slots) = (self.slot_bytes, self.slots);
        Ok(Box::new(RingsWriter { file, slot_bytes, slots, writes: Arc::clone(&self.writes) }))
    }

    fn renew(&mut self) -> Result<bool> {
        Ok(true)
    }

    fn syncs(&self) -> Result<Option<u64>> {
        Ok(Some(self.writes[0].load(Ordering::Relaxed)))
    }

    fn kept_per_writer(&self) -> u64 {
        self.slots as u64
    }

    fn read_back(&self, visit: &mut dyn FnMut(&[u8])) -> Result<()> {
        read_padded(&self.path, self.bytes, &mut |record| {
            let is_unused = record.iter().all(|byte| *byte == 0);
            if !is_unused {
                visit(record);
            }
        })
    }
}

struct RingsWriter {
    file: File,
    slot_bytes: usize,
    slots: usize,
    writes: Arc<Shared<AtomicU64>>,
}

impl Committer for RingsWriter {
    fn session(&self, writer: u32) -> Result<Box<dyn Session + '_>> {
        let buffer = AlignedBuffer::new(self.slot_bytes);
        let first_slot = writer as usize * self.slots;
        Ok(Box::new(RingSession { rings: self, first_slot, buffer, writes: 0 }))
    }
}

struct RingSession<'a> {
    rings: &'a RingsWriter,
    first_slot: usize,
    /// The padding in it is zero and stays so, for all records have the same length.
    buffer: AlignedBuffer,
    writes: u64,
}

impl Session for RingSession<'_> {
    fn commit(&mut self, record: &[u8]) -> Result<()> {
        let slot = self.first_slot + self.writes as usize % self.rings.slots;
        let block = self.buffer.as_mut_slice();
        block[..record.len()].copy_from_slice(record);
        let offset = (slot * self.rings.slot_bytes) as u64;
        let written = self.rings.file.write_at(block, offset).context(|| "pwrite O_DIRECT")?;
        whole("pwrite O_DIRECT", written, block.len())?;
        self.writes += 1;
        Ok(())
    }
}

impl Drop for RingSession<'_> {
    fn drop(&mut self) {
        self.rings.writes[0].fetch_add(self.writes, Ordering::Relaxed);
    }
}
