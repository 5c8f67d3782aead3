//! A record as readers hand it out.

use crate::Lsn;

/// A record, borrowed from its reader until the next call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Record<'a> {
    /// Where it stands.
    pub lsn: Lsn,
    /// Where to go on reading after it.
    pub next_lsn: Lsn,
    /// The caller's bytes. In a text log: a line with its newline, which only the last may lack.
    pub payload: &'a [u8],
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
}

impl Record<'_> {
    /// The same record with a copy of its bytes.
    pub fn into_owned(self) -> OwnedRecord {
        let Record { lsn, next_lsn, payload } = self;
        OwnedRecord { lsn, next_lsn, payload: payload.to_vec() }
    }
}

impl From<Record<'_>> for OwnedRecord {
    fn from(record: Record<'_>) -> OwnedRecord {
        record.into_owned()
    }
}
