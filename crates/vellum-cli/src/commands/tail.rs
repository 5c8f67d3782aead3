//! `vellum tail`: the newest records, and those that come.

mod again;

use vellum::{Log, Lsn};

use super::{cat, open_to_read};
use crate::lowargs::{CatArgs, TailArgs};
use crate::outcome::{Outcome, Result};

pub(super) fn run(args: &TailArgs) -> Result<Outcome> {
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
    let mut start = log.published();
    let mut newest_first = log.backwards(start)?;
    newest_first.skip_damage(cat::skips_damage(log, args));
    for record in newest_first.take(count) {
        start = record?.lsn;
    }
    Ok(start)
}
