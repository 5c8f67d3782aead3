//! Values that options may have, and their defaults.

use crate::options::choice::{Fill, Preallocate};
use crate::{Error, ErrorKind, Result};

pub(crate) use crate::format::control::{
    CAPACITY_UNIT_BYTES, SEGMENT_CAPACITY_BYTES_MAX, SEGMENT_CAPACITY_BYTES_MIN,
};

/// Capacity of a segment unless chosen otherwise: long enough that rotating costs nothing
/// measurable, short enough that one prepared segment ahead is no burden.
pub(crate) const SEGMENT_CAPACITY_BYTES_DEFAULT: u64 = 64 << 20;
/// The same of a log that stages records: two or three segments of it are in memory.
pub(crate) const STAGED_CAPACITY_BYTES_DEFAULT: u64 = 16 << 20;
/// Segments of a staged log that may hold records which are not durable.
pub(crate) const STAGED_SEGMENTS_MAX_DEFAULT: u64 = 3;
/// How far ahead of the tail pages are made ready (see `docs/benchmarks.md` for the measurement).
pub const PREFAULT_BYTES_DEFAULT: u64 = 1 << 20;
/// Four segments of the default capacity: the one being written, the next, and two late writers.
pub(crate) const MAPPED_BYTES_MAX_DEFAULT: u64 = 256 << 20;

/// Refuses a capacity that no segment can have.
pub fn check_segment_capacity(bytes: u64) -> Result<()> {
    let page = rustix::param::page_size() as u64;
    let range = SEGMENT_CAPACITY_BYTES_MIN..=SEGMENT_CAPACITY_BYTES_MAX;
    if range.contains(&bytes) && bytes.is_multiple_of(page.max(CAPACITY_UNIT_BYTES)) {
        return Ok(());
    }
    Err(invalid(format!(
        "\0segment_capacity_bytes\0 {bytes} is not a multiple of the page size ({page}) from \
         {SEGMENT_CAPACITY_BYTES_MIN} to {SEGMENT_CAPACITY_BYTES_MAX} bytes"
    )))
}

/// Refuses a window that cannot be made ready at a time.
pub fn check_prefault(bytes: u64) -> Result<()> {
    let page = rustix::param::page_size() as u64;
    if bytes != 0 && bytes.is_multiple_of(page.max(CAPACITY_UNIT_BYTES)) {
        return Ok(());
    }
    let message =
        format!("\0prefault_bytes\0 {bytes} is not a positive multiple of the page size ({page})");
    Err(invalid(message))
}

/// Refuses a mapping of holes.
pub fn check_sparse(preallocate: Option<Preallocate>, fill: Option<Fill>) -> Result<()> {
    if (preallocate, fill) != (Some(Preallocate::Sparse), Some(Fill::Mapped)) {
        return Ok(());
    }
    Err(invalid(
        "a log cannot be sparse and filled through a mapping, because a full disk would kill the \
         process; choose \0fill\0 pwrite, or \0preallocate\0 fallocate",
    ))
}

/// An error about options; each that it names is between `\0` and `\0`.
pub(crate) fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOption, message)
}
