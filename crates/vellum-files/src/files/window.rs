//! A stretch of the log in memory, read ahead by `pread`.
//!
//! Reading by system call costs a copy, and in return a file that shrinks under the reader is a
//! short read and not a signal. Only bytes published a moment ago are read through a mapping, and
//! only by a process that may store records through one: the same signal can meet it there.

use std::sync::Arc;

use crate::files::open_files::ReadFiles;
use crate::files::view::View;
use crate::segment::open::ReadSegment;
use crate::{Lsn, Result};

/// Bytes read at a time; more only where a record is longer.
const READ_AHEAD_BYTES: u64 = 256 << 10;
/// Bytes that a reader may be behind the writers to read through a mapping. For more, one system
/// call costs less than the page faults.
const MAPPED_BYTES_MAX: u64 = 32 << 10;
/// Bytes read at first, because it may be for one record: a page with the bytes before it.
const FIRST_BYTES: u64 = (4 << 10) + 64;
/// Somewhere else, so many bytes or a multiple of them are read at first.
const JUMP_BYTES: u64 = 512;

/// Bytes of the log from `start` on.
pub struct Window {
    view: Arc<dyn View>,
    files: ReadFiles,
    start: Lsn,
    bytes: Vec<u8>,
    /// How many of them hold something.
    filled: usize,
    /// How many of those a reader may take records from without a look at anything else.
    row: usize,
    /// Bytes to read the next time: twice as many each time, up to a limit.
    ahead: u64,
    ahead_max: u64,
    /// Where the log ended a moment ago, for a reader that may map the bytes before.
    end: Option<Lsn>,
}

impl Window {
    /// A window for reading in order.
    pub fn new(view: Arc<impl View>) -> Window {
        Window::reading(view, READ_AHEAD_BYTES)
    }

    /// One that continues in place of this one.
    pub fn successor(&self, view: Arc<impl View>) -> Window {
        Window { files: self.files.successor(), ..Window::new(view) }
    }

    /// Reads closed segments without a trace in the page cache, for a reader that reads a log once
    /// and in order.
    pub fn leave_no_trace(self) -> Window {
        Window { files: ReadFiles::without_trace(), ..self }
    }

    /// The same, of files that the log keeps open in this epoch.
    pub fn of_kept(view: Arc<impl View>, epoch: u64) -> Window {
        Window { files: ReadFiles::kept(epoch), ..Window::new(view) }
    }

    /// A window for single records.
    pub fn of_one(view: Arc<impl View>) -> Window {
        Window::reading(view, FIRST_BYTES)
    }

    fn reading(view: Arc<impl View>, ahead_max: u64) -> Window {
        let (files, bytes) = (ReadFiles::new(), Vec::new());
        let (start, ahead) = (Lsn::ZERO, FIRST_BYTES);
        Window { view, files, start, bytes, filled: 0, row: 0, ahead, ahead_max, end: None }
    }

    /// Continues at another place, perhaps for one record, of about `len` bytes.
    pub fn jump(&mut self, len: u64) {
        self.ahead = len.next_multiple_of(JUMP_BYTES).min(self.ahead_max);
        self.files.keep_more(&*self.view);
    }

    /// The held bytes of the log from `lsn` on, up to `limit`.
    #[inline]
    pub fn held(&self, lsn: Lsn, limit: Lsn) -> &[u8] {
        let offset = lsn.get().saturating_sub(self.start.get()).min(self.filled as u64) as usize;
        let held = if lsn < self.start { &[][..] } else { &self.bytes[offset..self.filled] };
        let wanted = limit.get().saturating_sub(lsn.get());
        &held[..held.len().min(wanted as usize)]
    }

    /// Lets records be taken from the held bytes before `end`, until these are read anew or
    /// forgotten.
    pub fn set_row_end(&mut self, end: Lsn) {
        let len = end.get().saturating_sub(self.start.get());
        self.row = len.min(self.filled as u64) as usize;
    }

    /// The held bytes from `lsn` on that records may be taken from.
    #[inline]
    pub fn row(&self, lsn: Lsn) -> Option<&[u8]> {
        // A position before the window comes out behind the end.
        let offset = lsn.get().wrapping_sub(self.start.get()) as usize;
        self.bytes.get(..self.row)?.get(offset..)
    }

    /// The held bytes from `lsn` on, where there are some.
    #[inline]
    pub fn from(&self, lsn: Lsn) -> &[u8] {
        &self.bytes[(lsn.get() - self.start.get()) as usize..]
    }

    /// Forgets the bytes, and the files that they were read from: there may be others by now.
    pub fn close(&mut self) {
        self.forget();
        self.files.close();
    }

    /// The `len` bytes at `lsn`, fewer only where the files end; reads ahead up to `limit`.
    #[inline]
    pub fn fetch(&mut self, lsn: Lsn, len: u64, limit: Lsn) -> Result<&[u8]> {
        let end = lsn.get() + len;
        if lsn < self.start || end > self.start.get() + self.filled as u64 {
            self.read_ahead(lsn, len, limit)?;
        }
        let offset = (lsn.get() - self.start.get()) as usize;
        let available = self.filled - offset;
        Ok(&self.bytes[offset..offset + available.min(len as usize)])
    }

    #[inline(never)]
    fn read_ahead(&mut self, lsn: Lsn, len: u64, limit: Lsn) -> Result<()> {
        let ahead = len.max(self.ahead).min(limit.get().saturating_sub(lsn.get()));
        self.ahead = (2 * self.ahead).min(self.ahead_max);
        self.refill(lsn, len, ahead.max(len))
    }

    /// Forgets the bytes that were read: they may have changed.
    pub fn forget(&mut self) {
        (self.filled, self.row) = (0, 0);
    }

    /// Forgets the bytes that were read, because the log now ends at `end`. `maps` is whether the
    /// bytes before may be read through a mapping.
    pub fn forget_until(&mut self, end: Lsn, maps: bool) {
        self.forget();
        self.end = maps.then_some(end);
    }

    /// Whether the bytes from `lsn` to `limit` are at the open end of the log. No process of the
    /// log cuts the file before that: a text file ends where the next segment is begun.
    #[inline]
    fn is_end(&self, lsn: Lsn, limit: u64) -> bool {
        self.end.is_some_and(|end| {
            limit <= end.get()
                && end.get() - lsn.get() <= MAPPED_BYTES_MAX
                && end < self.view.files().segment_end(lsn)
        })
    }

    /// Bytes of log that the segment at `first` holds, by the length of its file.
    pub fn segment_data_len(&mut self, first: Lsn) -> Result<u64> {
        let len = self.files.read(&*self.view, (first, false), |segment| segment.data_len())?;
        Ok(len.min(self.view.files().capacity()))
    }

    /// Reads `len` bytes at `lsn`, and up to `ahead` if they are there.
    fn refill(&mut self, lsn: Lsn, len: u64, ahead: u64) -> Result<()> {
        if self.bytes.len() as u64 > 4 * READ_AHEAD_BYTES && ahead <= READ_AHEAD_BYTES {
            // One long record must not hold its memory for ever.
            self.bytes = Vec::new();
        }
        self.forget();
        self.start = lsn;
        let mut next = lsn;
        let end = lsn.get() + ahead;
        let is_end = self.is_end(lsn, end);
        while next.get() < end {
            let first = self.view.files().segment_of(next);
            let segment_end = first.get() + self.view.files().capacity();
            let staged_from = self.view.staged_from();
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
            let read = |segment: &mut Arc<ReadSegment>| match Arc::get_mut(segment) {
                Some(segment) if is_end => segment.read_end(next, target),
                Some(segment) => {
                    segment.pass(next);
                    segment.read(next, target)
                }
                None => segment.read(next, target),
            };
            let read = self.files.read(&*self.view, (first, is_staged), read);
            if is_staged && self.view.staged_from() > Some(next) {
                // It has left the stage meanwhile, whose pages may hold something else by now.
                continue;
            }
            let count = match read {
                Ok(count) => count,
                Err(error) => {
                    // An error further on is for the caller that asks for those bytes.
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
