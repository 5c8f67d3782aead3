//! `vellum truncate`: the newest part of a log goes.

use anyhow::ensure;
use serde::Serialize;
use vellum::{Layout, Log, Lsn};
use vellum_command::outcome::{Outcome, Result};
use vellum_command::output;

use super::ask::may_go_on;
use super::open::{open_to_read, open_to_write};
use crate::args::TruncateArgs;
use crate::table;

#[derive(Serialize)]
struct JsonTruncate {
    from: u64,
    end: u64,
    bytes: u64,
    /// Counted only where nothing is dropped: dropped records may be damaged.
    #[serde(skip_serializing_if = "Option::is_none")]
    records: Option<u64>,
    dry_run: bool,
}

pub(super) fn run(args: &TruncateArgs) -> Result<Outcome> {
    if !(args.yes || args.dry_run || is_agreed(args)?) {
        return Ok(Outcome::Failed);
    }
    let log = if args.dry_run { open_to_read(&args.log)? } else { open_to_write(&args.log)? };
    let (begin, end) = (log.begin(), log.published());
    ensure!(
        (begin..=end).contains(&args.from),
        "cannot truncate from {}: the log holds what is from {begin} to {end}",
        args.from
    );
    let (bytes, records) = if args.dry_run {
        count(&log, args.from)?
    } else {
        let before = log.stat()?.kept_bytes;
        log.truncate(args.from)?;
        (before.saturating_sub(log.stat()?.kept_bytes), None)
    };
    if args.json {
        let (from, end) = (args.from.get(), end.get());
        output::print_json(&JsonTruncate { from, end, bytes, records, dry_run: args.dry_run })?;
    } else {
        output::note(args.quiet, sentence(args.from, end, table::bytes(bytes), records));
    }
    Ok(Outcome::Good)
}

/// Asks, where records would go.
fn is_agreed(args: &TruncateArgs) -> Result<bool> {
    let log = open_to_read(&args.log)?;
    let (begin, end, from) = (log.begin(), log.published(), args.from);
    if !(begin..end).contains(&from) {
        return Ok(true);
    }
    let log = args.log.display();
    may_go_on(format_args!("{log} holds {begin} to {end}: drop everything from {from} on?"))
}

/// How many bytes and records are there from `from` on. Between the files of a text log are
/// positions without bytes.
fn count(log: &Log, from: Lsn) -> Result<(u64, Option<u64>)> {
    let mut reader = log.reader(from)?;
    let (mut text, mut records) = (0, 0);
    while let Some(record) = reader.next()? {
        text += record.payload.len() as u64;
        records += 1;
    }
    let bytes = match log.layout() {
        Layout::Text => text,
        _ => log.published().get() - from.get(),
    };
    Ok((bytes, Some(records)))
}

fn sentence(from: Lsn, end: Lsn, bytes: String, records: Option<u64>) -> String {
    match records {
        Some(records) => {
            let records = table::count(records, "record");
            format!("{records} of {bytes} would go, from {from} to {end}")
        }
        None => format!("{bytes} dropped; the log ends at {from}, not {end}"),
    }
}
