//! Positions in a log.
//!
//! An [`Lsn`] is a byte position in the log's endless address space. It grows, it may skip, and no
//! record ever is at 0. In one epoch of the log it is never reused: a power cut or a truncation,
//! after which positions are given out again, begins the next epoch (`Position`).

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

/// The byte position of a record in a log (*log sequence number*).
///
/// Positions are totally ordered: a record with a smaller `Lsn` was reserved earlier. They are not
/// consecutive; the next record's position is known only when it is appended. To store one outside
/// of the log, take a [`Position`](crate::Position): after a power cut or a truncation the same
/// `Lsn` may be another record.
///
/// ```
/// # use vellum_files as vellum;
/// use vellum::Lsn;
/// let lsn: Lsn = "4096".parse().unwrap();
/// assert!(lsn > Lsn::ZERO);
/// assert_eq!(lsn.get(), 4096);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(u64);

impl Lsn {
    /// Position 0, where no record ever is. As a place to read from it means "the oldest".
    pub const ZERO: Lsn = Lsn(0);

    /// The largest position a log can reach: 2^54 − 1 (16 PiB), because the tail word packs
    /// the position with the number of a slot.
    pub const MAX: Lsn = Lsn((1 << 54) - 1);

    /// Makes a position from its number of bytes.
    #[inline]
    pub const fn new(position: u64) -> Lsn {
        Lsn(position)
    }

    /// The position as a number of bytes.
    #[inline]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Lsn {
    type Err = ParseIntError;

    /// Reads a decimal position.
    fn from_str(text: &str) -> Result<Lsn, ParseIntError> {
        text.parse().map(Lsn)
    }
}

impl From<Lsn> for u64 {
    fn from(lsn: Lsn) -> u64 {
        lsn.0
    }
}

/// A range of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// Where it begins.
    pub start: Lsn,
    /// Its bytes.
    pub len: u64,
}

impl Range {
    /// Where it ends.
    #[inline]
    pub fn end(self) -> Lsn {
        Lsn::new(self.start.get() + self.len)
    }

    /// Whether a position is in it.
    pub fn holds(self, lsn: Lsn) -> bool {
        self.start <= lsn && lsn < self.end()
    }
}
