//! A stretch of the log in memory, read ahead by `pread`.
//!
//! Reading by system call costs a copy, and in return a file that shrinks under the reader is a
//! short read and not a signal. Only what was published a moment ago is read through a mapping, and
//! only by a process that may store records through one: the same signal can meet it there.

use std::sync::Arc;

use crate::log::core::Core;
use crate::segment::file::ReadSegment;
use crate::segment::listing::Listing;
use crate::{Fill, Layout, Lsn, Result};

/// Bytes read at a time; more only where a record is longer.
const READ_AHEAD_BYTES: u64 = 256 << 10;
/// What a reader may be behind the writers to read through a mapping. For more, one system call
/// costs less than the page faults.
const MAPPED_BYTES_MAX: u64 = 32 << 10;
/// Bytes read at first, because it may be for one record: a page with what stands before it.
const FIRST_BYTES: u64 = (4 << 10) + 64;

/// Bytes of the log from `start` on.
pub(crate) struct Window {
    core: Arc<Core>,
    /// The files of a text log as they were listed last: reading all of them takes one listing.
    listing: Arc<Listing>,
    segment: Option<ReadSegment>,
    start: Lsn,
    bytes: Vec<u8>,
    /// How many of them hold something.
    filled: usize,
    /// Bytes to read the next time: twice as many each time, up to a limit.
    ahead: u64,
    ahead_max: u64,
    /// Where the log ended a moment ago, for a reader that may map the bytes before.
    end: Option<Lsn>,
}

impl Window {
    pub(crate) fn new(core: Arc<Core>) -> Window {
        Window::reading(core, READ_AHEAD_BYTES)
    }

    /// For who wants single records.
    pub(crate) fn of_one(core: Arc<Core>) -> Window {
        Window::reading(core, FIRST_BYTES)
    }

    fn reading(core: Arc<Core>, ahead_max: u64) -> Window {
        let (listing, bytes) = (core.last_listing.get(), Vec::new());
        let (start, ahead) = (Lsn::ZERO, FIRST_BYTES);
        Window {
            core,
            listing,
            segment: None,
            start,
            bytes,
            filled: 0,
            ahead,
            ahead_max,
            end: None,
        }
    }

    /// Goes on somewhere else, perhaps for one record.
    pub(crate) fn jump(&mut self) {
        self.ahead = FIRST_BYTES;
    }

    /// Forgets what was read, and the file that it was read from: it may be another one by now.
    pub(crate) fn close(&mut self) {
        self.forget();
        self.segment = None;
    }

    /// The `len` bytes at `lsn`, fewer only where the files end; reads ahead up to `limit`.
    pub(crate) fn fetch(&mut self, lsn: Lsn, len: u64, limit: Lsn) -> Result<&[u8]> {
        let end = lsn.get() + len;
        if lsn < self.start || end > self.start.get() + self.filled as u64 {
            let ahead = len.max(self.ahead).min(limit.get().saturating_sub(lsn.get()));
            self.ahead = (2 * self.ahead).min(self.ahead_max);
            self.refill(lsn, len, ahead.max(len))?;
        }
        let offset = (lsn.get() - self.start.get()) as usize;
        let available = self.filled - offset;
        Ok(&self.bytes[offset..offset + available.min(len as usize)])
    }

    /// Forgets what was read: the bytes may have changed.
    pub(crate) fn forget(&mut self) {
        self.filled = 0;
    }

    /// Forgets what was read, because the log now ends at `end`.
    pub(crate) fn forget_until(&mut self, end: Lsn) {
        self.forget();
        let maps = self.core.writer.is_some() && self.core.geometry.fill == Fill::Mapped;
        self.end = maps.then_some(end);
    }

    /// Whether the bytes from `lsn` to `limit` are at the open end of the log. No process of the
    /// log cuts the file before that: a text file ends where the next segment is begun.
    #[inline]
    fn is_end(&self, lsn: Lsn, limit: u64) -> bool {
        self.end.is_some_and(|end| {
            limit <= end.get()
                && end.get() - lsn.get() <= MAPPED_BYTES_MAX
                && end < self.core.segment_end(lsn)
        })
    }

    /// Bytes of log that the segment at `first` holds, by the length of its file.
    pub(crate) fn segment_data_len(&mut self, first: Lsn) -> Result<u64> {
        let segment = open(&self.core, &mut self.listing, &mut self.segment, first, false)?;
        Ok(segment.data_len()?.min(self.core.capacity()))
    }

    /// Reads `len` bytes at `lsn`, and up to `ahead` if they are there.
    fn refill(&mut self, lsn: Lsn, len: u64, ahead: u64) -> Result<()> {
        if self.bytes.len() as u64 > 4 * READ_AHEAD_BYTES && ahead <= READ_AHEAD_BYTES {
            // One long record must not hold its memory for ever.
            self.bytes = Vec::new();
        }
        self.filled = 0;
        self.start = lsn;
        let mut next = lsn;
        let end = lsn.get() + ahead;
        let is_end = self.is_end(lsn, end);
        while next.get() < end {
            let first = self.core.segment_of(next);
            let segment_end = first.get() + self.core.capacity();
            let staged_from = self.core.stage_begin();
            let is_staged = staged_from.is_some_and(|begin| begin <= next);
            let limit = match staged_from {
                Some(begin) if !is_staged => segment_end.min(begin.get()),
                _ => segment_end,
            };
            let filled = self.filled;
            // No more at a time than was there so far: a length may be nonsense.
            let piece = READ_AHEAD_BYTES.max(filled as u64);
            let wanted = (end.min(limit) - next.get()).min(piece) as usize;
            if self.bytes.len() < filled + wanted {
                self.bytes.resize(filled + wanted, 0);
            }
            let target = &mut self.bytes[filled..filled + wanted];
            let (listing, kept) = (&mut self.listing, &mut self.segment);
            let read = |segment: &mut ReadSegment| match is_end {
                true => segment.read_end(next, target),
                false => segment.read(next, target),
            };
            let read = open(&self.core, listing, kept, first, is_staged).and_then(read);
            if is_staged && self.core.stage_begin() > Some(next) {
                // It has left the stage meanwhile, whose pages may hold something else by now.
                continue;
            }
            let count = match read {
                Ok(count) => count,
                Err(error) => {
                    // What is missing further on is for those who ask for it.
                    return if filled as u64 >= len { Ok(()) } else { Err(error) };
                }
            };
            self.filled = filled + count;
            if count < wanted {
                break;
            }
            next = Lsn::new(next.get() + wanted as u64);
        }
        Ok(())
    }
}

/// The segment at `first`, or its stage; the one opened last is kept open.
fn open<'a>(
    core: &Core,
    listing: &mut Arc<Listing>,
    kept: &'a mut Option<ReadSegment>,
    first: Lsn,
    is_staged: bool,
) -> Result<&'a mut ReadSegment> {
    let is_kept = |kept: &ReadSegment| kept.first == first && kept.is_staged == is_staged;
    if !kept.as_ref().is_some_and(is_kept) {
        *kept = None;
        *kept = Some(match &core.stage {
            Some(stage) if is_staged => ReadSegment::open_staged(stage, &core.geometry, first)?,
            _ => open_file(core, listing, first)?,
        });
    }
    Ok(kept.as_mut().expect("was just set"))
}

/// Opens the file of the segment at `first`, by the listing if it knows it.
pub(crate) fn open_file(
    core: &Core,
    listing: &mut Arc<Listing>,
    first: Lsn,
) -> Result<ReadSegment> {
    let newest = core.words().files.names.newest().map(|newest| newest.first);
    if core.geometry.layout == Layout::Framed || newest == Some(first) {
        return core.open_to_read(first);
    }
    if let Some(segment) = open_listed(core, listing, first) {
        return Ok(segment);
    }
    // It was not there when the directory was listed, or was removed or compressed since.
    *listing = Arc::new(Listing::read(&core.dir)?);
    if let Some(newest) = newest {
        core.last_listing.keep(listing, newest);
    }
    open_listed(core, listing, first).map_or_else(|| core.open_to_read(first), Ok)
}

fn open_listed(core: &Core, listing: &Listing, first: Lsn) -> Option<ReadSegment> {
    let path = listing.get(first)?.path.clone();
    ReadSegment::open(&core.dir, path, &core.geometry, first).ok()
}
