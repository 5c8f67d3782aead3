//! When a text log continues in a new file, which files it keeps, and its choice on a full disk.

use std::str::FromStr;
use std::time::Duration;

use crate::options::choice::{Compression, named};
use crate::options::limits::invalid;
use crate::{Error, ErrorKind, Result};

/// The behaviour of an append when there is no space for its record:
/// [`Tuning::on_full`](crate::Tuning::on_full).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnFull {
    /// It returns [`ErrorKind::NoSpace`]; nothing was reserved.
    #[default]
    Error,
    /// It waits until there is space again.
    Block,
    /// It drops the record, counts it, and returns [`Lsn::ZERO`](crate::Lsn::ZERO). When there is
    /// space again, the next append writes a line that says how many records were dropped. For
    /// text logs.
    ///
    /// Dropping costs less than a microsecond: while the disk is known to be full, all processes
    /// together look for space 20 times a second. So records are appended again 50 ms after another
    /// program made space, and at once after this log removed files or a process opened it.
    Drop,
}

named!(OnFull, "answer to a full disk", Error = "error", Block = "block", Drop = "drop");

/// When a text log continues in a new file, and which of its files it keeps.
///
/// Belongs to the log, not to a process: it is stored with the log, every process follows it, and
/// an opener with another policy changes it for all. `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Policy {
    /// [`Options::rotate_bytes`](crate::Options::rotate_bytes).
    pub rotate_bytes: Option<u64>,
    /// [`Options::rotate_every`](crate::Options::rotate_every).
    pub rotate_every: Option<Duration>,
    /// [`Options::rotate_offset`](crate::Options::rotate_offset).
    pub rotate_offset: Duration,
    /// [`Options::retain_bytes`](crate::Options::retain_bytes).
    pub retain_bytes: Option<u64>,
    /// [`Options::retain_age`](crate::Options::retain_age).
    pub retain_age: Option<Duration>,
    /// [`Options::retain_files`](crate::Options::retain_files).
    pub retain_files: Option<u64>,
    /// [`Options::compress`](crate::Options::compress).
    pub compression: Compression,
}

/// The stored value of "no limit" in a policy.
const NONE: u64 = u64::MAX;
/// Numbers that a policy is stored as.
pub(crate) const NUMBER_COUNT: usize = 7;

impl Policy {
    /// The policy as it is stored, in files and in shared words: spans in seconds.
    pub(crate) fn to_numbers(self) -> [u64; NUMBER_COUNT] {
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

    pub(crate) fn from_numbers(numbers: [u64; NUMBER_COUNT]) -> Policy {
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

/// The policy options of a program; those that it leaves alone stay as the log has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PolicyUpdate {
    pub(crate) rotate_bytes: Option<u64>,
    pub(crate) rotate_every: Option<Duration>,
    pub(crate) rotate_offset: Option<Duration>,
    pub(crate) retain_bytes: Option<u64>,
    pub(crate) retain_age: Option<Duration>,
    pub(crate) retain_files: Option<u64>,
    pub(crate) compression: Option<Compression>,
}

impl PolicyUpdate {
    /// The wish for exactly `policy`.
    pub(crate) fn of(policy: Policy) -> PolicyUpdate {
        PolicyUpdate {
            rotate_bytes: policy.rotate_bytes,
            rotate_every: policy.rotate_every,
            rotate_offset: policy.rotate_every.map(|_| policy.rotate_offset),
            retain_bytes: policy.retain_bytes,
            retain_age: policy.retain_age,
            retain_files: policy.retain_files,
            compression: Some(policy.compression),
        }
    }

    /// Whether the program leaves everything alone.
    pub(crate) fn is_empty(&self) -> bool {
        *self == PolicyUpdate::default()
    }

    /// The same without what a framed log can do too.
    pub(super) fn for_text_alone(&self) -> PolicyUpdate {
        PolicyUpdate { retain_bytes: None, retain_age: None, ..*self }
    }

    /// The names of the options that are set.
    pub(super) fn names(&self) -> Vec<&'static str> {
        let said = [
            ("rotate_bytes", self.rotate_bytes.is_some()),
            ("rotate_every", self.rotate_every.is_some()),
            ("rotate_offset", self.rotate_offset.is_some()),
            ("retain_bytes", self.retain_bytes.is_some()),
            ("retain_age", self.retain_age.is_some()),
            ("retain_files", self.retain_files.is_some()),
            ("compress", self.compression.is_some()),
        ];
        said.into_iter().filter(|(_, is_said)| *is_said).map(|(name, _)| name).collect()
    }

    /// The policy of a log that has `stored`; zeros mean no limit.
    pub(crate) fn applied_to(&self, stored: Policy) -> Policy {
        fn limit(update: Option<u64>, stored: Option<u64>) -> Option<u64> {
            update.map_or(stored, |limit| (limit != 0).then_some(limit))
        }
        fn whole(span: Duration) -> Duration {
            Duration::from_secs(span.as_secs())
        }
        fn span(update: Option<Duration>, stored: Option<Duration>) -> Option<Duration> {
            update.map_or(stored, |span| Some(whole(span)).filter(|span| !span.is_zero()))
        }
        Policy {
            rotate_bytes: limit(self.rotate_bytes, stored.rotate_bytes),
            rotate_every: span(self.rotate_every, stored.rotate_every),
            rotate_offset: self.rotate_offset.map_or(stored.rotate_offset, whole),
            retain_bytes: limit(self.retain_bytes, stored.retain_bytes),
            retain_age: span(self.retain_age, stored.retain_age),
            // Zero files is a wish of its own: keep only the current one.
            retain_files: self
                .retain_files
                .map_or(stored.retain_files, |count| (count != u64::MAX).then_some(count)),
            compression: self.compression.unwrap_or(stored.compression),
        }
    }

    /// Refuses values that mean nothing.
    pub(crate) fn check(&self) -> Result<()> {
        for (what, span) in [("rotate_every", self.rotate_every), ("retain_age", self.retain_age)] {
            if let Some(span) = span.filter(|span| !span.is_zero() && span.as_secs() == 0) {
                return Err(invalid(format!("\0{what}\0 of {span:?} is less than a second")));
            }
        }
        if let Some(compression) = self.compression.filter(|compression| !compression.is_built()) {
            return Err(invalid(format!(
                "this build of Vellum cannot \0compress\0 with {compression}; build it with the \
                 feature `{compression}`"
            )));
        }
        Ok(())
    }
}
