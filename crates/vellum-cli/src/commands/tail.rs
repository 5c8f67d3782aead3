//! `vellum tail`: the newest records, and those that come.

mod again;
mod cursor;

use std::collections::VecDeque;

use vellum::{ErrorKind, Layout, Log, Lsn};

use super::{cat, open_to_read};
use crate::lowargs::{CatArgs, TailArgs};
use crate::outcome::{Outcome, Result};

/// How far before the end of a text log its last lines are looked for first.
const TEXT_BYTES_FIRST: u64 = 64 << 10;

pub(super) fn run(args: &TailArgs) -> Result<Outcome> {
    if let Some(name) = &args.cursor {
        return cursor::run(args, name);
    }
    let TailArgs { lines, follow, retry, json, null, skip_damage, .. } = *args;
    let (log, from, to) = (args.log.clone(), Lsn::ZERO, None);
    let mut cat = CatArgs { log, from, to, follow: follow || retry, json, null, skip_damage };
    if retry {
        return again::run(cat, lines);
    }
    let log = open_to_read(&args.log)?;
    cat.from = start(&log, &cat, lines)?;
    cat::print(&log, &cat, cat::AtTrimmed::GoOn, &|| false)
}

/// Where the last `count` records start.
fn start(log: &Log, args: &CatArgs, count: usize) -> Result<Lsn> {
    let (begin, end) = (log.begin(), log.published());
    if count == 0 {
        return Ok(end);
    }
    for from in places_to_look(log, begin, end)? {
        match last_records(log, args, from, count) {
            Ok(lsns) if lsns.len() == count || from <= begin => {
                return Ok(lsns.front().copied().unwrap_or(end));
            }
            Ok(_) => {}
            // A record that is longer than a segment goes on here.
            Err(error) if error.kind() == ErrorKind::OutOfRange => {}
            Err(error) if error.kind() == ErrorKind::Trimmed => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(log.begin())
}

/// Positions from which to read to the end, nearer ones first, the last of them `begin`.
fn places_to_look(log: &Log, begin: Lsn, end: Lsn) -> Result<Vec<Lsn>> {
    let mut places = Vec::new();
    if log.layout() == Layout::Text {
        let mut bytes = TEXT_BYTES_FIRST;
        while end.get().saturating_sub(begin.get()) > bytes {
            places.push(Lsn::new(end.get() - bytes));
            bytes *= 8;
        }
    } else {
        let segments = log.stat()?.segments;
        let firsts = segments.iter().rev().map(|segment| segment.first_lsn);
        places.extend(firsts.filter(|first| begin < *first && *first < end));
    }
    places.push(begin);
    Ok(places)
}

/// The positions of the last `count` records from `from` on.
fn last_records(
    log: &Log,
    args: &CatArgs,
    from: Lsn,
    count: usize,
) -> vellum::Result<VecDeque<Lsn>> {
    let end = log.published();
    let mut reader = cat::reader(log, args, from)?;
    let mut lsns = VecDeque::new();
    // In the middle of a text log, the first line may be the rest of one.
    let mut is_whole = log.layout() != Layout::Text || from <= log.begin();
    while reader.position() < end {
        let Some(record) = reader.next()? else { break };
        if is_whole {
            lsns.push_back(record.lsn);
        }
        if lsns.len() > count {
            lsns.pop_front();
        }
        is_whole = true;
    }
    Ok(lsns)
}
