//! A record as readers hand it out.

use std::time::SystemTime;

use crate::format::envelope::Envelope;
use crate::{Lsn, WriterId};

/// A record, borrowed from its reader until the next call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Record<'a> {
    /// Its position.
    pub lsn: Lsn,
    /// The position of the next one.
    pub next_lsn: Lsn,
    /// The caller's bytes. In a text log: a line with its newline, which only the last may lack.
    pub payload: &'a [u8],
    /// Its envelope, in a log with envelopes.
    #[doc(hidden)]
    pub envelope: Option<Envelope>,
}

/// A record with bytes of its own, which may be kept and sent to other threads.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OwnedRecord {
    /// Where it is.
    pub lsn: Lsn,
    /// Where to continue reading after it.
    pub next_lsn: Lsn,
    /// The caller's bytes. In a text log: a line with its newline, which only the last may lack.
    pub payload: Vec<u8>,
    pub(crate) envelope: Option<Envelope>,
}

impl<'a> Record<'a> {
    /// The record at `lsn`.
    #[doc(hidden)]
    #[inline]
    pub fn new(
        lsn: Lsn,
        next_lsn: Lsn,
        payload: &'a [u8],
        envelope: Option<Envelope>,
    ) -> Record<'a> {
        Record { lsn, next_lsn, payload, envelope }
    }

    /// The same record with a copy of its bytes.
    pub fn into_owned(self) -> OwnedRecord {
        let Record { lsn, next_lsn, payload, envelope } = self;
        OwnedRecord { lsn, next_lsn, payload: payload.to_vec(), envelope }
    }

    /// When it was appended, by the clock of the machine: when its place was reserved. `None` in a
    /// log without [envelopes](../vellum/struct.Options.html#method.envelope).
    ///
    /// Clocks are set, so a record may have an earlier time than one before it.
    pub fn time(&self) -> Option<SystemTime> {
        self.envelope.map(Envelope::time)
    }

    /// The process that appended it. `None` in a log without
    /// [envelopes](../vellum/struct.Options.html#method.envelope).
    pub fn writer(&self) -> Option<WriterId> {
        self.envelope.map(|envelope| envelope.writer)
    }
}

impl OwnedRecord {
    /// When it was appended, as [`Record::time`].
    pub fn time(&self) -> Option<SystemTime> {
        self.envelope.map(Envelope::time)
    }

    /// The process that appended it, as [`Record::writer`].
    pub fn writer(&self) -> Option<WriterId> {
        self.envelope.map(|envelope| envelope.writer)
    }
}

impl From<Record<'_>> for OwnedRecord {
    fn from(record: Record<'_>) -> OwnedRecord {
        record.into_owned()
    }
}
