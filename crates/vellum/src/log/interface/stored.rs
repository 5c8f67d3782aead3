//! `Log`: positions that are stored outside of it.

use std::sync::Arc;

use crate::format::identity::Meaning;
use crate::log::state::identity;
use crate::log::{Log, Reader};
use crate::shared::primitive::Ordering;
use crate::{LogId, Lsn, Position, Result};

impl Log {
    /// Which log this is. `None` where an earlier version made it: the first opening for writing
    /// gives it an id, unless the disk is full.
    pub fn id(&self) -> Option<LogId> {
        self.core.opened.identity.as_ref().map(|identity| identity.id)
    }

    /// The epoch in which this handle was opened, or which its own [`truncate`](Log::truncate)
    /// began. [`Stat::epoch`](crate::stat::Stat::epoch) is the one that the log is in. 0 without an
    /// [id](Log::id).
    ///
    /// An epoch ends whenever positions may be given out again that were visible: when the log is
    /// recovered (after a power cut, in a copy, without its control file), and when it is
    /// truncated. The next one is a larger number, in a copy a much larger one.
    pub fn epoch(&self) -> u64 {
        self.core.opened.epoch.load(Ordering::Relaxed)
    }

    /// The position `lsn` in a form to be stored outside of the log.
    ///
    /// For a position that this handle returned: from an append, a reader, or
    /// [`published`](Log::published). A process that reads while others truncate takes
    /// [`Reader::position_of`], because this handle's [`epoch`](Log::epoch) is the one in which it
    /// was opened, and positions that were given out later may be refused. Costs a read of memory.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](crate::ErrorKind::Unsupported) in a log without an [id](Log::id).
    pub fn position(&self, lsn: Lsn) -> Result<Position> {
        identity::position(&self.core, self.epoch(), lsn)
    }

    /// A reader that starts with the record that `position` was taken for, which is the same record
    /// still. Its [`position`](Reader::position) is the LSN.
    ///
    /// # Errors
    ///
    /// [`OtherLog`](crate::ErrorKind::OtherLog) for a position of another log;
    /// [`Rewound`](crate::ErrorKind::Rewound) where the record may be gone, or another one may
    /// be there: [`Error::lsn`](crate::Error::lsn) says from where on the log may differ;
    /// [`Trimmed`](crate::ErrorKind::Trimmed) and [`OutOfRange`](crate::ErrorKind::OutOfRange) as
    /// for [`reader`](Log::reader).
    pub fn reader_at(&self, position: Position) -> Result<Reader> {
        Reader::at(Arc::clone(&self.core), position, Meaning::Record)
    }

    /// A reader that continues behind the handled record. `position` is a record's
    /// [`next_lsn`](crate::Record::next_lsn), or the end of the log.
    ///
    /// It holds as long as everything *before* it is unchanged. So a program that had read
    /// everything continues after a power cut that took nothing away before.
    ///
    /// # Errors
    ///
    /// As for [`reader_at`](Log::reader_at).
    pub fn reader_at_next(&self, position: Position) -> Result<Reader> {
        Reader::at(Arc::clone(&self.core), position, Meaning::Next)
    }
}
