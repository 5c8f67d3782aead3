//! Recovering a log after a power cut, and saving what is readable of a damaged one.

use std::path::Path;

use crate::{Error, ErrorKind, Lsn, Result};

/// What opening a log after a power cut, or without its control file, came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovery {
    /// End of what was recovered.
    pub end: Lsn,
    /// End of what is known to have been durable before.
    pub durable: Lsn,
    /// Bytes behind `end` that were cut, because a crash had torn them.
    pub cut_bytes: u64,
}

/// What [`repair`] saved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepairReport {
    /// Records that were readable, and are in the new log.
    pub records: u64,
    /// Bytes of their payloads.
    pub record_bytes: u64,
    /// What was not readable.
    pub damage: Vec<crate::Damage>,
}

/// Saves what is readable of the log in `from` into a new log in `to`; changes nothing in `from`.
pub fn repair(from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<RepairReport> {
    let _ = (from, to);
    Err(Error::new(ErrorKind::Unsupported, "not there yet"))
}
