//! A record, as C gets it.

use std::ffi::c_void;
use std::time::SystemTime;

use vellum::{Lsn, WriterId};

/// A record, as a reader lends it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct vellum_record {
    /// The caller's bytes; in a text log a line with its newline, which only the last may lack.
    /// Borrowed until the next call with the same reader. Not followed by a NUL.
    pub data: *const c_void,
    /// How many.
    pub len: usize,
    /// The position of the record.
    pub lsn: u64,
    /// The position of the next one.
    pub next_lsn: u64,
}

/// The envelope of the record that was returned last; zeros where there is none.
#[derive(Clone, Copy, Default)]
pub(crate) struct Stamp {
    pub(crate) time_ns: u64,
    pub(crate) writer: u64,
}

impl Stamp {
    pub(crate) fn new(time: Option<SystemTime>, writer: Option<WriterId>) -> Stamp {
        Stamp { time_ns: time.map_or(0, nanos), writer: writer.map_or(0, WriterId::get) }
    }
}

pub(crate) fn lent(payload: &[u8], lsn: Lsn, next_lsn: Lsn) -> vellum_record {
    let (data, len) = (payload.as_ptr().cast(), payload.len());
    vellum_record { data, len, lsn: lsn.get(), next_lsn: next_lsn.get() }
}

fn nanos(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
