//! `Log`: functions that append.

use std::io::IoSlice;

use crate::log::append::{Append, general};
use crate::log::{Batch, Log, RecordWriter, Reservation};
use crate::{Lsn, Result};

impl Log {
    /// Appends one record; returns its position, or [`Lsn::ZERO`] for one that was
    /// [dropped](crate::OnFull::Drop).
    ///
    /// In a text log the bytes go in as they are: the caller brings the newline.
    ///
    /// # Errors
    ///
    /// [`NoSpace`](crate::ErrorKind::NoSpace) on a full disk, unless
    /// [`Tuning::on_full`](crate::Tuning::on_full) says otherwise, and
    /// [`RecordTooLarge`](crate::ErrorKind::RecordTooLarge) for more than 4 GiB − 1, both before
    /// anything is reserved, and so is [`TimedOut`](crate::ErrorKind::TimedOut) with
    /// [`Options::timeout`](crate::Options::timeout); [`Removed`](crate::ErrorKind::Removed)
    /// within a second after the log's directory was removed or moved;
    /// [`ReadOnly`](crate::ErrorKind::ReadOnly); [`Io`](crate::ErrorKind::Io) where the operating
    /// system refuses to write. After an error the record is not in the log, and the log continues.
    ///
    /// # Durability
    ///
    /// When it returns, the record survives the death of this process and of every other, and
    /// readers see it as soon as the records before it are published. It does not yet survive a
    /// power cut: that is what [`commit`](Log::commit) is for.
    ///
    /// # Cost
    ///
    /// A small record costs one contended atomic operation and a copy; one over 128 KiB one
    /// `pwrite`, and so does one over 48 KiB of a thread that appends alone. One of the writers now
    /// and then writes zeros to the page cache for the appends of the next millisecond: 14 µs for
    /// 16 KiB, 300 µs for the most, which is [`prefault_bytes`](crate::Tuning::prefault_bytes).
    ///
    /// In a [staged](crate::Fill::Staged) log it then also gets on with the next segment: 512 KiB
    /// to the device for each 256 KiB of records, and two syncs at the end. Records of 64 KiB and
    /// more have the next segment written and synced by one append. Where the stage is full an
    /// append commits up to [`staged_segments_max`](crate::Tuning::staged_segments_max) segments,
    /// or fails ([`on_stage_full`](crate::Tuning::on_stage_full)). Each takes as long as the device
    /// does: the whole of a segment 5 to 25 ms as measured.
    ///
    /// A [keeper](Log::keep_prepared) or a [committer](Log::committer) of this process does all
    /// that for records of up to 64 KiB, as long as it keeps up: no append syncs anything then, or
    /// writes to the device, and hardly one writes zeros.
    #[inline]
    pub fn append(&self, record: &[u8]) -> Result<Lsn> {
        Append::of(&self.core).append_record(record)
    }

    /// Appends one record given in parts; returns its position.
    ///
    /// # Errors, Durability, Cost
    ///
    /// As for [`append`](Log::append). More than eight parts cost an allocation.
    pub fn append_vectored(&self, parts: &[IoSlice<'_>]) -> Result<Lsn> {
        general::with_slices(parts, |parts| Append::of(&self.core).append_parts(parts))
    }

    /// Appends one record and commits it; returns its position.
    ///
    /// # Errors, Durability, Cost
    ///
    /// As for [`append`](Log::append) and [`commit`](Log::commit). After an error of the commit
    /// the record may be in the log, and may be found by recovery.
    pub fn append_durable(&self, record: &[u8]) -> Result<Lsn> {
        let lsn = self.append(record)?;
        if self.holds(record) {
            self.commit(lsn)?;
        }
        Ok(lsn)
    }

    /// Whether something is in the log once this record is: no bytes of text are nothing.
    pub(crate) fn holds(&self, record: &[u8]) -> bool {
        !record.is_empty() || self.layout().has_frames()
    }

    /// Reserves `len` bytes at the tail, to be written in place and then published.
    ///
    /// # Errors
    ///
    /// As for [`append`](Log::append); nothing is reserved after an error.
    pub fn reserve(&self, len: usize) -> Result<Reservation<'_>> {
        let core = &self.core;
        Append::of(core).retry_when_full(|| Reservation::new(core, len))
    }

    /// Begins a record that is written piece by piece, by [`write!`](std::write) or any other user
    /// of an [`io::Write`](std::io::Write).
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let log = vellum::Options::events().open(dir.path().join("app.log")).unwrap();
    /// use std::io::Write;
    ///
    /// let mut record = log.writer();
    /// write!(record, "{} of {}", 1, 3)?;
    /// let lsn = record.append()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn writer(&self) -> RecordWriter<'_> {
        RecordWriter::new(self)
    }

    /// Begins a batch: several records that appear all or none.
    pub fn batch(&self) -> Batch<'_> {
        Batch::new(&self.core)
    }
}
