//! Rates: records and bytes in a second.

use std::fmt;
use std::time::Duration;

use serde::Serialize;
use vellum::stat::Stat;

use crate::table::bytes;

/// Events in a second.
#[derive(Debug, Serialize)]
pub(super) struct Rates {
    pub(super) appended_bytes: u64,
    commits: u64,
    syncs: u64,
    dropped: u64,
}

impl Rates {
    pub(super) fn between(before: &Stat, now: &Stat, passed: Duration) -> Rates {
        let rate = |before: u64, now: u64| {
            (now.saturating_sub(before) as f64 / passed.as_secs_f64()).round() as u64
        };
        Rates {
            appended_bytes: rate(before.record_bytes, now.record_bytes),
            commits: rate(before.commits.commits, now.commits.commits),
            syncs: rate(before.commits.syncs, now.commits.syncs),
            dropped: rate(before.dropped, now.dropped),
        }
    }
}

impl fmt::Display for Rates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rates { appended_bytes, commits, syncs, dropped } = self;
        write!(f, "{} appended, {commits} commits in {syncs} syncs", bytes(*appended_bytes))?;
        if *dropped > 0 {
            write!(f, ", {dropped} dropped")?;
        }
        Ok(())
    }
}
