//! `Log`: keeping records, holds on them, and preparing space.

use std::sync::Arc;

use crate::log::keep::cursors;
use crate::log::keep::trim;
use crate::log::keep::truncate;
use crate::log::layout::text::TextLog;
use crate::log::ready::spare_segments;
use crate::log::{Cursor, CursorStat, Log, SegmentKeeper, TrimReport};
use crate::{Lsn, Result};

impl Log {
    /// Drops everything before `before`: whole segments are removed, or kept for new records
    /// ([`spare_segments_max`](crate::Tuning::spare_segments_max)); the rest is no longer shown.
    ///
    /// Drops less where a [cursor](Cursor::hold) holds records back:
    /// [`held_at`](TrimReport::held_at) tells.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`](crate::ErrorKind::OutOfRange) for a position beyond
    /// [`published`](Log::published), or (framed) where no record starts. A position before
    /// [`begin`](Log::begin) is fine and changes nothing.
    ///
    /// # Durability
    ///
    /// In a framed log that commits, the new beginning survives a power cut when it returns. In
    /// others, dropped records may be there again after one.
    ///
    /// # Cost
    ///
    /// A sync of the device, and one more where a staged log or a cursor has something to write;
    /// each file that goes is renamed or removed. That takes milliseconds, so it is not for an
    /// event loop. Appends and commits continue meanwhile.
    pub fn trim(&self, before: Lsn) -> Result<TrimReport> {
        trim::trim(&self.core, before)
    }

    /// Drops the newest part of the log: the record at `from` and all behind it.
    ///
    /// Positions from `from` on are given out again, in the next [epoch](Log::epoch): those that
    /// were [stored](Log::position) before are refused. Readers that have come further get
    /// [`OutOfRange`](crate::ErrorKind::OutOfRange). After an error the epoch may have begun
    /// although nothing was dropped.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`](crate::ErrorKind::OutOfRange) for a position outside of the log or (framed)
    /// where no record starts; [`Busy`](crate::ErrorKind::Busy) while another process has the log
    /// open for writing, a child lives that was forked since this one opened it and may append, or
    /// an append of this process is in progress; otherwise as for [`commit`](Log::commit).
    ///
    /// # Durability
    ///
    /// Everything before is committed first. When it returns, dropped records stay dropped.
    ///
    /// # Cost
    ///
    /// A few syncs, and zeros over what was dropped.
    pub fn truncate(&self, from: Lsn) -> Result<()> {
        truncate::truncate(&self.core, from)
    }

    /// The cursor of this name. A new one is made at `from`, or at the oldest record for
    /// [`Lsn::ZERO`], and holds nothing. One that is there stays where it is.
    ///
    /// A name has 1 to 64 letters, digits, `.`, `_` and `-` (ASCII).
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let log = vellum::Options::events().open(dir.path().join("app.log")).unwrap();
    /// use vellum::{CursorHold, Lsn};
    ///
    /// log.append(b"a record")?;
    /// let cursor = log.cursor("shipper", Lsn::ZERO)?;
    /// cursor.own()?;
    /// cursor.hold(CursorHold::new().max_bytes(1 << 30))?;
    /// let mut reader = cursor.reader()?;
    /// while let Some(record) = reader.next()? {
    ///     // Send it.
    ///     let finished = record.next_lsn;
    ///     cursor.commit(finished)?;
    /// }
    /// # assert_eq!(log.cursors()?[0].lag_records, Some(0));
    /// # Ok::<(), vellum::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidOption`](crate::ErrorKind::InvalidOption) for another name;
    /// [`Busy`](crate::ErrorKind::Busy) when the log has 128 cursors already;
    /// [`NotFound`](crate::ErrorKind::NotFound) when the log was opened for reading only and has no
    /// such cursor; [`NoSpace`](crate::ErrorKind::NoSpace) for the first cursor of a log on a full
    /// disk; otherwise as for [`Cursor::set`].
    ///
    /// # Durability
    ///
    /// When it returns, the cursor survives a power cut.
    ///
    /// # Cost
    ///
    /// Reading a file of 132 KiB. The first cursor of a log makes that file. A new cursor costs two
    /// writes and two syncs. A log without cursors pays nothing for them.
    pub fn cursor(&self, name: &str, from: Lsn) -> Result<Cursor> {
        Cursor::open(Arc::clone(&self.core), name, from)
    }

    /// The state of every cursor of the log, in the order of their names.
    ///
    /// # Errors
    ///
    /// [`Io`](crate::ErrorKind::Io), [`Corrupt`](crate::ErrorKind::Corrupt) and
    /// [`Incompatible`](crate::ErrorKind::Incompatible) when the file of the cursors cannot be
    /// read.
    ///
    /// # Cost
    ///
    /// Reading that file; for each cursor, reading up to 1 MiB of the log to count records, and a
    /// look through `/proc` for its owner.
    pub fn cursors(&self) -> Result<Vec<CursorStat>> {
        cursors::stat::stat(&self.core)
    }

    /// Has a text log continue in a new file at the next append, whatever its policy says.
    ///
    /// Until the next append nothing happens, and the file that is written stays the newest.
    /// Appends of other threads at this moment may still go there. An empty file is not left.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](crate::ErrorKind::Unsupported) in a framed log,
    /// [`ReadOnly`](crate::ErrorKind::ReadOnly).
    pub fn rotate(&self) -> Result<()> {
        TextLog::of(&self.core).rotate()
    }

    /// Makes sure that `segments` segments are ready beyond the one being written; returns how
    /// many were made. Of a text log one file is kept ready, which gets its name later.
    ///
    /// # Errors
    ///
    /// [`NoSpace`](crate::ErrorKind::NoSpace) for more than there is space for, before anything is
    /// made, and on a disk that gets full meanwhile. Those made before are given back, or
    /// stay where another process has the log open.
    ///
    /// # Durability
    ///
    /// In a [staged](crate::Fill::Staged) log they and their names are on the device when it
    /// returns, so commits in them wait for no journal.
    pub fn prepare(&self, segments: u64) -> Result<u64> {
        spare_segments::prepare_all(&self.core, segments)
    }

    /// Gives back the segments that are ready beyond the written ones, and returns how many those
    /// were. The next append makes the segment that it needs.
    ///
    /// # Errors
    ///
    /// [`Busy`](crate::ErrorKind::Busy) as for [`truncate`](Log::truncate).
    pub fn release_prepared(&self) -> Result<u64> {
        spare_segments::release(&self.core, u64::MAX)
    }

    /// A thread that keeps `segments` segments ready, until it is dropped, and the next mebibytes
    /// of the log mapped and written with zeros: appends of this process find all that done. In a
    /// [staged](crate::Fill::Staged) log it also commits when half a segment is not durable, so
    /// that no append finds the stage full while it keeps up.
    ///
    /// # Errors
    ///
    /// As for [`prepare`](Log::prepare), and [`Io`](crate::ErrorKind::Io) where no thread can be
    /// started.
    pub fn keep_prepared(&self, segments: u64) -> Result<SegmentKeeper> {
        SegmentKeeper::new(Arc::clone(&self.core), segments)
    }
}
