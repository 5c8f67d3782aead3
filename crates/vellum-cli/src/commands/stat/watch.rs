//! The state of a log again and again, and what came meanwhile.

use std::fmt;
use std::io::IsTerminal;
use std::os::fd::AsFd;
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use vellum::Log;
use vellum::stat::Stat;
use vellum_command::outcome::{Outcome, Result};
use vellum_command::output;
use vellum_command::stdio::{self, is_output_closed};

use crate::args::StatArgs;
use crate::table::bytes;

/// How often to look.
const PERIOD: Duration = Duration::from_secs(1);
/// Has a terminal forget what it shows.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// What came in a second.
#[derive(Debug, Serialize)]
pub(super) struct Rates {
    appended_bytes: u64,
    commits: u64,
    syncs: u64,
    dropped: u64,
}

/// Shows the log until nobody looks any more.
pub(super) fn run(log: &Log, args: &StatArgs) -> Result<Outcome> {
    let is_terminal = stdio::stdout().as_fd().is_terminal();
    let (mut before, mut since) = (log.stat()?, Instant::now());
    super::print(args, &before, None)?;
    while !is_output_closed() {
        thread::sleep(PERIOD);
        let (now, at) = (log.stat()?, Instant::now());
        let rates = Rates::between(&before, &now, at - since);
        match (args.json, is_terminal) {
            (true, _) => {}
            (false, true) => output::print(CLEAR)?,
            (false, false) => output::print("\n")?,
        }
        super::print(args, &now, Some(&rates))?;
        (before, since) = (now, at);
    }
    Ok(Outcome::Good)
}

impl Rates {
    fn between(before: &Stat, now: &Stat, passed: Duration) -> Rates {
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
