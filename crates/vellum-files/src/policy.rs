//! When a text log continues in a new file, and which files it keeps.

use std::time::Duration;

use crate::Compression;

/// When a text log continues in a new file, and which of its files it keeps.
///
/// Belongs to the log, not to a process: it is stored with the log, every process follows it, and
/// a process that opens the log with another policy changes it for all. `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Policy {
    /// [`Options::rotate_bytes`](../../vellum/struct.Options.html#method.rotate_bytes).
    pub rotate_bytes: Option<u64>,
    /// [`Options::rotate_every`](../../vellum/struct.Options.html#method.rotate_every).
    pub rotate_every: Option<Duration>,
    /// [`Options::rotate_offset`](../../vellum/struct.Options.html#method.rotate_offset).
    pub rotate_offset: Duration,
    /// [`Options::retain_bytes`](../../vellum/struct.Options.html#method.retain_bytes).
    pub retain_bytes: Option<u64>,
    /// [`Options::retain_age`](../../vellum/struct.Options.html#method.retain_age).
    pub retain_age: Option<Duration>,
    /// [`Options::retain_files`](../../vellum/struct.Options.html#method.retain_files).
    pub retain_files: Option<u64>,
    /// [`Options::compress`](../../vellum/struct.Options.html#method.compress).
    pub compression: Compression,
}

/// Stands for "no limit" where a policy is stored.
const NONE: u64 = u64::MAX;
/// Numbers that a policy is stored as.
pub const NUMBER_COUNT: usize = 7;

#[doc(hidden)]
impl Policy {
    /// Whether files are ever removed.
    pub fn removes(&self) -> bool {
        self.retain_bytes.is_some() || self.retain_age.is_some() || self.retain_files.is_some()
    }

    /// The policy as it is stored, in files and in shared words: spans in seconds.
    pub fn to_numbers(self) -> [u64; NUMBER_COUNT] {
        let limit = |limit: Option<u64>| limit.unwrap_or(NONE);
        let span = |span: Option<Duration>| span.map_or(NONE, |span| span.as_secs());
        [
            limit(self.rotate_bytes),
            span(self.rotate_every),
            self.rotate_offset.as_secs(),
            limit(self.retain_bytes),
            span(self.retain_age),
            limit(self.retain_files),
            self.compression as u64,
        ]
    }

    /// The policy that is stored so.
    pub fn from_numbers(numbers: [u64; NUMBER_COUNT]) -> Policy {
        let limit = |number: u64| Some(number).filter(|limit| *limit != NONE);
        let span = |number: u64| limit(number).map(Duration::from_secs);
        let [rotate_bytes, every, offset, retain_bytes, age, retain_files, compression] = numbers;
        Policy {
            rotate_bytes: limit(rotate_bytes),
            rotate_every: span(every),
            rotate_offset: Duration::from_secs(offset),
            retain_bytes: limit(retain_bytes),
            retain_age: span(age),
            retain_files: limit(retain_files),
            compression: match compression {
                0 => Compression::None,
                2 => Compression::Gzip,
                _ => Compression::Zstd,
            },
        }
    }
}
