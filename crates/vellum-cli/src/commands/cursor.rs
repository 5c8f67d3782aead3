//! `vellum cursor`: named positions, for people and as JSON.

use std::time::{Duration, SystemTime};

use serde::Serialize;
use vellum::stat::CursorStat;
use vellum::{Cursor, CursorHold, Log, LogId, Lsn};
use vellum_command::outcome::{Outcome, Result};
use vellum_command::output;

use super::open::{open_beside, open_to_read};
use crate::args::{CursorArgs, Position};
use crate::table::{ALERT, Align, Table, age, bytes, line_width, lines};

pub(super) fn run(args: &CursorArgs) -> Result<Outcome> {
    if let Some(name) = &args.name
        && (args.set.is_some() || args.hold || args.no_hold || args.delete)
    {
        return change(&open_beside(&args.log)?, name, args);
    }
    show(&open_to_read(&args.log)?, args)
}

/// Does what was asked of the cursor, and shows it.
fn change(log: &Log, name: &str, args: &CursorArgs) -> Result<Outcome> {
    let is_there = log.cursors()?.iter().any(|cursor| cursor.name == name);
    if !is_there && (args.delete || args.no_hold) {
        return Err(missing(name));
    }
    if args.delete {
        log.cursor(name, Lsn::ZERO)?.remove()?;
        return Ok(Outcome::Good);
    }
    let lsn = args.set.map(|position| resolve(log, position)).transpose()?;
    let cursor = log.cursor(name, lsn.unwrap_or(Lsn::ZERO))?;
    if let Some(lsn) = lsn.filter(|_| is_there) {
        cursor.set(lsn)?;
    }
    hold(&cursor, args)?;
    show(log, args)
}

/// The position that is meant, in the log as it is now.
pub(super) fn resolve(log: &Log, position: Position) -> vellum::Result<Lsn> {
    match position {
        Position::Begin => Ok(Lsn::ZERO),
        Position::End => Ok(log.published()),
        Position::At(lsn) => Ok(lsn),
        Position::Stored(position) => Ok(log.reader_at_next(position)?.position()),
    }
}

fn hold(cursor: &Cursor, args: &CursorArgs) -> vellum::Result<()> {
    if args.no_hold {
        return cursor.unhold();
    }
    if !args.hold {
        return Ok(());
    }
    let mut hold = CursorHold::new();
    (hold.max_bytes, hold.max_age) = (args.max_held, args.max_held_age);
    cursor.hold(hold)
}

fn show(log: &Log, args: &CursorArgs) -> Result<Outcome> {
    let mut cursors = log.cursors()?;
    if let Some(name) = &args.name {
        cursors.retain(|cursor| cursor.name == *name);
        if cursors.is_empty() {
            return Err(missing(name));
        }
    }
    if args.json {
        let epoch = log.id().zip(Some(log.epoch()));
        let cursors = cursors.iter().map(|cursor| JsonCursor::new(cursor, epoch));
        let cursors: Vec<JsonCursor> = cursors.collect();
        output::print_json(&cursors)?;
    } else if !cursors.is_empty() {
        output::print(&(table(&cursors, true) + &alerts(&cursors)))?;
    }
    Ok(Outcome::Good)
}

fn missing(name: &str) -> anyhow::Error {
    anyhow::anyhow!("the log has no cursor {name}; `--set begin` makes one")
}

/// A cursor as JSON; times are in seconds since 1970.
#[derive(Serialize)]
pub(super) struct JsonCursor {
    name: String,
    lsn: u64,
    /// The same as a stored position; `null` where an earlier version made the log.
    position: Option<String>,
    lag_bytes: u64,
    /// `null` where counting them takes too long.
    lag_records: Option<u64>,
    /// How old the oldest record is that is not finished, at most; `null` where nothing tells.
    lag_seconds: Option<u64>,
    holds: bool,
    max_held_bytes: Option<u64>,
    max_held_age_seconds: Option<u64>,
    owned: bool,
    /// The process that owns it; `null` if none does, or it cannot be seen.
    owner: Option<u32>,
    committed_at_seconds: u64,
    overrun: JsonOverrun,
}

/// The records that were removed in front of a cursor: upper bounds.
#[derive(Serialize)]
struct JsonOverrun {
    /// Bytes that its reader does not know of.
    missing_bytes: u64,
    /// How often its reader skipped such bytes, how many these were, and the last time.
    count: u64,
    bytes: u64,
    last_seconds: Option<u64>,
}

impl JsonCursor {
    /// Of a cursor in the log of this id, in this epoch.
    pub(super) fn new(cursor: &CursorStat, epoch: Option<(LogId, u64)>) -> JsonCursor {
        let lsn = cursor.lsn;
        let stored = |(log, epoch)| vellum::Position { log, epoch, lsn }.to_string();
        let hold = cursor.hold.unwrap_or_default();
        JsonCursor {
            name: cursor.name.clone(),
            lsn: lsn.get(),
            position: epoch.map(stored),
            lag_bytes: cursor.lag_bytes,
            lag_records: cursor.lag_records,
            lag_seconds: cursor.lag_time.map(|time| time.as_secs()),
            holds: cursor.hold.is_some(),
            max_held_bytes: hold.max_bytes,
            max_held_age_seconds: hold.max_age.map(|age| age.as_secs()),
            owned: cursor.is_owned,
            owner: cursor.owner,
            committed_at_seconds: seconds(cursor.committed_at),
            overrun: JsonOverrun {
                missing_bytes: cursor.missing_bytes,
                count: cursor.overruns,
                bytes: cursor.overrun_bytes,
                last_seconds: cursor.overrun_at.map(seconds),
            },
        }
    }
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Cursors for people.
pub(super) fn table(cursors: &[CursorStat], has_positions: bool) -> String {
    let mut table = Table::new(&[
        ("cursor", Align::Left),
        ("lsn", Align::Right),
        ("behind", Align::Right),
        ("records", Align::Right),
        ("moved", Align::Right),
        ("holds", Align::Left),
        ("owner", Align::Left),
    ]);
    for cursor in cursors {
        let since = SystemTime::now().duration_since(cursor.committed_at).unwrap_or_default();
        table.row([
            cursor.name.clone(),
            cursor.lsn.to_string(),
            bytes(cursor.lag_bytes),
            cursor.lag_records.map_or_else(|| "-".into(), |count| count.to_string()),
            age(since),
            held(cursor),
            owner(cursor),
        ]);
    }
    table.without(if has_positions { &[] } else { &["lsn"] }).render()
}

fn held(cursor: &CursorStat) -> String {
    let Some(hold) = cursor.hold else { return "nothing".into() };
    let limits = [
        hold.max_bytes.map(|most| format!("up to {}", bytes(most))),
        hold.max_age.map(|age| format!("up to {} old", span(age))),
    ];
    let limits: Vec<String> = limits.into_iter().flatten().collect();
    if limits.is_empty() { "everything".into() } else { limits.join(", ") }
}

fn span(span: Duration) -> String {
    format!("{} s", span.as_secs())
}

fn owner(cursor: &CursorStat) -> String {
    match (cursor.is_owned, cursor.owner) {
        (true, Some(pid)) => format!("process {pid}"),
        (true, None) => "a process that cannot be seen".into(),
        (false, _) => "nobody".into(),
    }
}

/// The records that were removed in front of cursors; empty where none were.
pub(super) fn alerts(cursors: &[CursorStat]) -> String {
    let overrun = cursors.iter().filter(|cursor| cursor.missing_bytes > 0);
    let alert = |cursor: &CursorStat| {
        let text = format!(
            "cursor {} is overrun: up to {} bytes were removed in front of it",
            cursor.name, cursor.missing_bytes
        );
        format!("\n{ALERT}{}{ALERT:#}\n", lines(&text, line_width()).join("\n"))
    };
    overrun.map(alert).collect()
}
