//! The holds that others may wait for.

use vellum::stat::{Hold, HoldKind, ProcessState};

use crate::table::{ALERT, Align, Table, bytes, line_width, lines};

/// Holds that do not end by themselves, and their remedies; empty where there are none.
pub(super) fn alerts(holds: &[Hold]) -> String {
    let stopped = holds.iter().filter(|hold| hold.state == ProcessState::Stopped);
    let alert = |hold: &Hold| {
        let lines = lines(&alert(hold), line_width()).join("\n");
        format!("\n{ALERT}{lines}{ALERT:#}\n")
    };
    stopped.map(alert).collect()
}

fn alert(hold: &Hold) -> String {
    let then = match (hold.pid, hold.other_namespace) {
        (Some(pid), false) => format!("kill -CONT {pid} has it go on, kill -KILL {pid} ends it"),
        _ => "have it go on, or end it".into(),
    };
    format!("{hold}: {then}")
}

/// Everything that is held; empty where nothing is.
pub(super) fn table(holds: &[Hold], has_positions: bool) -> String {
    if holds.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&[
        ("held", Align::Left),
        ("by pid", Align::Right),
        ("which is", Align::Left),
        ("others wait for", Align::Right),
        ("from lsn", Align::Right),
        ("bytes", Align::Right),
    ]);
    for hold in holds {
        table.row([
            what(hold.what).into(),
            hold.pid.map_or_else(|| "?".into(), |pid| pid.to_string()),
            state(hold),
            hold.waited.map_or_else(|| "-".into(), |time| format!("{:.1} s", time.as_secs_f64())),
            hold.range.map_or_else(|| "-".into(), |range| range.first_lsn.to_string()),
            hold.range.map_or_else(|| "-".into(), |range| bytes(range.bytes)),
        ]);
    }
    let table = table.without(if has_positions { &[] } else { &["from lsn"] });
    format!("\n{}", table.render())
}

fn what(what: HoldKind) -> &'static str {
    match what {
        HoldKind::Space => "making space ready",
        HoldKind::Repair => "repairing",
        HoldKind::Commit => "beginning a batch",
        HoldKind::CommitGroup => "commit group being written",
        HoldKind::TextWriteLock => "lock for writing text",
        HoldKind::DroppedRecords => "line about drops",
        HoldKind::Append => "append in flight",
        HoldKind::Gate => "opening or closing",
        HoldKind::Compression => "compressing",
        HoldKind::Cursors => "changing cursors",
        _ => "something newer",
    }
}

fn state(hold: &Hold) -> String {
    let place = if hold.other_namespace { ", in another PID namespace" } else { "" };
    format!("{}{place}", hold.state)
}
