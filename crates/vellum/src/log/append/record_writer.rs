//! Records that are written piece by piece, and collected in memory.

use std::cell::Cell;
use std::io;
use std::ops::{Deref, DerefMut};

use crate::{Log, Lsn, Result};

/// A larger buffer is not kept for the next record.
const KEPT_BYTES_MAX: usize = 64 << 10;

thread_local! {
    /// The buffer of this thread's last record.
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Memory for one record; each thread uses its own again, so that most records allocate none.
#[derive(Debug)]
pub struct Buffer(Vec<u8>);

impl Buffer {
    /// The memory that this thread used for its last record.
    pub fn take() -> Buffer {
        // A thread that is ending, or in the middle of another record, gets a new one.
        Buffer(SPARE.try_with(Cell::take).unwrap_or_default())
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.0.capacity() <= KEPT_BYTES_MAX {
            self.0.clear();
            let bytes = std::mem::take(&mut self.0);
            let _ = SPARE.try_with(|spare| spare.set(bytes));
        }
    }
}

impl Deref for Buffer {
    type Target = Vec<u8>;

    fn deref(&self) -> &Vec<u8> {
        &self.0
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        &mut self.0
    }
}

/// A record that is written piece by piece and appended as a whole.
///
/// Made by [`Log::writer`]. All bytes become one record, at [`append`](RecordWriter::append), at
/// `flush`, or when it is dropped, whichever comes first; a record without bytes is not appended.
/// Bytes after a `flush` are the next record. Dropping it has no way to report an error: use
/// `append` where that matters.
///
/// # Cost
///
/// A copy in memory, into a buffer that the thread keeps for the next record.
#[derive(Debug)]
#[must_use = "the record is appended when this is dropped"]
pub struct RecordWriter<'a> {
    log: &'a Log,
    bytes: Buffer,
}

impl<'a> RecordWriter<'a> {
    pub(crate) fn new(log: &'a Log) -> RecordWriter<'a> {
        RecordWriter { log, bytes: Buffer::take() }
    }

    /// Appends what was written; returns its position, or that of the tail if nothing was.
    ///
    /// # Errors, Durability
    ///
    /// As for [`Log::append`]; after an error the record is given up.
    pub fn append(mut self) -> Result<Lsn> {
        if self.bytes.is_empty() { Ok(self.log.tail()) } else { self.append_bytes() }
    }

    fn append_bytes(&mut self) -> Result<Lsn> {
        let answer = self.log.append(&self.bytes);
        self.bytes.clear();
        answer
    }
}

impl io::Write for RecordWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    /// Appends what was written since the last time.
    fn flush(&mut self) -> io::Result<()> {
        if !self.bytes.is_empty() {
            self.append_bytes()?;
        }
        Ok(())
    }
}

impl Drop for RecordWriter<'_> {
    fn drop(&mut self) {
        // As with other buffered writers, a caller that needs the error calls `append` or `flush`.
        let _ = io::Write::flush(self);
    }
}
