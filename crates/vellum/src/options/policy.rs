//! When a text log continues in a new file, which files it keeps, and its choice on a full disk.

use std::str::FromStr;
use std::time::Duration;

use crate::options::choice::{Compression, named};
use crate::options::limits::invalid;
use crate::{Error, ErrorKind, Result};

pub(crate) use vellum_files::policy::{NUMBER_COUNT, Policy};

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
        let mut policy = stored;
        policy.rotate_bytes = limit(self.rotate_bytes, stored.rotate_bytes);
        policy.rotate_every = span(self.rotate_every, stored.rotate_every);
        policy.rotate_offset = self.rotate_offset.map_or(stored.rotate_offset, whole);
        policy.retain_bytes = limit(self.retain_bytes, stored.retain_bytes);
        policy.retain_age = span(self.retain_age, stored.retain_age);
        // Zero files is a wish of its own: keep only the current one.
        policy.retain_files = self
            .retain_files
            .map_or(stored.retain_files, |count| (count != u64::MAX).then_some(count));
        policy.compression = self.compression.unwrap_or(stored.compression);
        policy
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
