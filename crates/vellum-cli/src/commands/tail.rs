//! `vellum tail`: the newest records, and those that come.

mod again;
mod cursor;

use vellum::{Log, Lsn};
use vellum_command::outcome::{Outcome, Result};
use vellum_command::output;

use super::cat;
use super::open::open_to_read;
use crate::args::{CatArgs, Lines, Position, TailArgs};

pub(super) fn run(args: &TailArgs) -> Result<Outcome> {
    if let Some(name) = &args.cursor {
        return cursor::run(args, name);
    }
    let TailArgs { lines, follow, retry, read, .. } = *args;
    let (logs, from, since) = (vec![args.log.clone()], Position::Begin, args.since);
    let (to, until, follow) = (None, None, follow || retry);
    let cat = CatArgs { logs, from, to, since, until, follow, read };
    if retry {
        return again::run(&args.log, &cat, lines);
    }
    let log = open_to_read(&args.log)?;
    let start = start(&log, &cat, lines)?;
    let printed = cat::print(&log, &cat, start.from, cat::AtTrimmed::GoOn, &|| false)?;
    Ok(start.outcome(printed))
}

/// Where `tail` begins.
struct Start {
    from: Lsn,
    /// A part of the wanted records is missing.
    is_short: bool,
}

impl Start {
    /// The outcome, with the gap before the first record.
    fn outcome(&self, printed: Outcome) -> Outcome {
        if self.is_short && printed == Outcome::Good { Outcome::Damaged } else { printed }
    }
}

/// Where the records start that are to be printed first.
fn start(log: &Log, args: &CatArgs, lines: Lines) -> Result<Start> {
    let from = match (args.since, lines) {
        (Some(since), _) => log.reader_at_time(since)?.position(),
        (None, Lines::Last(count)) => return last(log, args, count),
        (None, Lines::From(number)) => return from_number(log, args, number),
    };
    Ok(Start { from, is_short: false })
}

/// Where the last `count` records start.
fn last(log: &Log, args: &CatArgs, count: usize) -> Result<Start> {
    // Retention may have removed what was never committed.
    let mut from = if args.read.durable { log.durable().max(log.begin()) } else { log.published() };
    let mut newest_first = log.backwards(from)?;
    newest_first.skip_damage(cat::skips_damage(log, args));
    let mut found = 0;
    for record in newest_first.by_ref().take(count) {
        from = record?.lsn;
        found += 1;
    }
    // Gaps behind the first record are reported when it comes to printing.
    let mut gaps = newest_first.take_gaps();
    gaps.retain(|gap| found < count && gap.from < from);
    gaps.dedup();
    gaps.iter().for_each(output::say);
    Ok(Start { from, is_short: !gaps.is_empty() })
}

/// Where the record with this number starts, counted from 1.
fn from_number(log: &Log, args: &CatArgs, number: usize) -> Result<Start> {
    let mut reader = cat::reader(log, args, Lsn::ZERO)?;
    for _ in 1..number {
        if reader.next()?.is_none() {
            break;
        }
    }
    let is_short = cat::say_gaps(&mut reader);
    // Where nothing was counted, the missing part in front is reported when printing begins.
    let from = if number > 1 { reader.position() } else { Lsn::ZERO };
    Ok(Start { from, is_short })
}
