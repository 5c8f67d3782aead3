//! A stretch of the log in memory, read ahead by `pread`.
//!
//! Reading by system call costs a copy, and in return a file that shrinks under the reader is a
//! short read and not a signal.

use std::sync::Arc;

use crate::log::batch::CoreRef;
use crate::segment::file::ReadSegment;
use crate::{Lsn, Result};

/// Bytes read at a time; more only where a record is longer.
const READ_AHEAD_BYTES: u64 = 256 << 10;

/// Bytes of the log from `start` on.
pub(crate) struct Window {
    core: Arc<CoreRef>,
    segment: Option<ReadSegment>,
    start: Lsn,
    bytes: Vec<u8>,
}

impl Window {
    pub(crate) fn new(core: Arc<CoreRef>) -> Window {
        Window { core, segment: None, start: Lsn::ZERO, bytes: Vec::new() }
    }

    /// The `len` bytes at `lsn`, fewer only where the files end; reads ahead up to `limit`.
    pub(crate) fn fetch(&mut self, lsn: Lsn, len: u64, limit: Lsn) -> Result<&[u8]> {
        let end = lsn.get() + len;
        if lsn < self.start || end > self.start.get() + self.bytes.len() as u64 {
            let ahead = len.max(READ_AHEAD_BYTES).min(limit.get().saturating_sub(lsn.get()));
            self.refill(lsn, len, ahead.max(len))?;
        }
        let offset = (lsn.get() - self.start.get()) as usize;
        let available = self.bytes.len() - offset;
        Ok(&self.bytes[offset..offset + available.min(len as usize)])
    }

    /// Forgets what was read: the bytes may have changed.
    pub(crate) fn forget(&mut self) {
        self.bytes.clear();
    }

    /// Bytes of log that the segment at `first` holds, by the length of its file.
    pub(crate) fn segment_data_len(&mut self, first: Lsn) -> Result<u64> {
        Ok(self.open(first)?.data_len()?.min(self.core.0.capacity()))
    }

    /// Reads `len` bytes at `lsn`, and up to `ahead` if they are there.
    fn refill(&mut self, lsn: Lsn, len: u64, ahead: u64) -> Result<()> {
        if self.bytes.capacity() as u64 > 4 * READ_AHEAD_BYTES && ahead <= READ_AHEAD_BYTES {
            // One long record must not hold its memory for ever.
            self.bytes = Vec::new();
        }
        self.bytes.clear();
        self.start = lsn;
        let mut next = lsn;
        let end = lsn.get() + ahead;
        while next.get() < end {
            let first = self.core.0.segment_of(next);
            let segment_end = first.get() + self.core.0.capacity();
            let wanted = (end.min(segment_end) - next.get()) as usize;
            let filled = self.bytes.len();
            self.bytes.resize(filled + wanted, 0);
            if let Err(error) = self.open(first) {
                // What is missing further on is for those who ask for it.
                self.bytes.truncate(filled);
                return if filled as u64 >= len { Ok(()) } else { Err(error) };
            }
            let segment = self.segment.as_ref().expect("was just opened");
            let count = segment.read(next, &mut self.bytes[filled..])?;
            self.bytes.truncate(filled + count);
            if count < wanted {
                break;
            }
            next = Lsn::new(next.get() + wanted as u64);
        }
        Ok(())
    }

    fn open(&mut self, first: Lsn) -> Result<&ReadSegment> {
        if self.segment.as_ref().is_none_or(|segment| segment.first != first) {
            self.segment = None;
            let core = &self.core.0;
            self.segment = Some(ReadSegment::open(&core.dir, &core.geometry, first)?);
        }
        Ok(self.segment.as_ref().expect("was just set"))
    }
}
