//! `vellum tail`: the newest records, and those that come.

mod again;
mod cursor;

use vellum::{Log, Lsn};
use vellum_command::outcome::{Outcome, Result};

use super::cat;
use super::open::open_to_read;
use crate::args::{CatArgs, Position, TailArgs};

pub(super) fn run(args: &TailArgs) -> Result<Outcome> {
    if let Some(name) = &args.cursor {
        return cursor::run(args, name);
    }
    let TailArgs { lines, follow, retry, read, .. } = *args;
    let (log, from, since) = (args.log.clone(), Position::Begin, args.since);
    let (to, until, follow) = (None, None, follow || retry);
    let cat = CatArgs { log, from, to, since, until, follow, read };
    if retry {
        return again::run(cat, lines);
    }
    let log = open_to_read(&args.log)?;
    let from = start(&log, &cat, lines)?;
    cat::print(&log, &cat, from, cat::AtTrimmed::GoOn, &|| false)
}

/// Where the last `count` records start, or those of the time that is asked for.
fn start(log: &Log, args: &CatArgs, count: usize) -> Result<Lsn> {
    if let Some(since) = args.since {
        return Ok(log.reader_at_time(since)?.position());
    }
    // Retention may have removed what was never committed.
    let mut start =
        if args.read.durable { log.durable().max(log.begin()) } else { log.published() };
    let mut newest_first = log.backwards(start)?;
    newest_first.skip_damage(cat::skips_damage(log, args));
    for record in newest_first.take(count) {
        start = record?.lsn;
    }
    Ok(start)
}
