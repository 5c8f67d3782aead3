//! Records of a time.

use std::time::SystemTime;

use vellum::{Log, Lsn, Record};

use crate::args::CatArgs;

/// Which records are printed, by when they were appended.
pub(super) struct Times {
    since: Option<SystemTime>,
    until: Option<SystemTime>,
    /// From here on none is.
    pub(super) end: Lsn,
}

impl Times {
    /// What the user asks for, in this log.
    pub(super) fn of(log: &Log, args: &CatArgs) -> vellum::Result<Times> {
        let CatArgs { since, until, .. } = *args;
        let end = match until {
            Some(_) => log.positions_of_time(None, until)?.end,
            None => Lsn::MAX,
        };
        Ok(Times { since, until, end })
    }

    /// Whether the record is among them; one whose time is not known is.
    pub(super) fn have(&self, record: Record<'_>) -> bool {
        record.time().is_none_or(|time| {
            self.since.is_none_or(|since| since <= time)
                && self.until.is_none_or(|until| time < until)
        })
    }
}
