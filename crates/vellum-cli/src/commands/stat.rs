//! `vellum stat`: the state of a log, for people and as JSON.

mod commits;
mod holds;
mod json;
mod policy;

use std::fmt::Write;
use std::path::Path;

use vellum::{Log, Lsn, ParticipantStat, SegmentStat, Stat};

pub(super) use commits::prepared_segments;

use super::open_to_read;
use crate::lowargs::StatArgs;
use crate::outcome::{Outcome, Result};
use crate::output;
use crate::table::{ALERT, Align, HEADING, Table, bytes, count, lines};

/// What a line of 100 characters leaves to the values of facts.
const VALUE_WIDTH: usize = 85;

pub(super) fn run(args: &StatArgs) -> Result<Outcome> {
    let log: Log = open_to_read(&args.log)?;
    let stat = log.stat()?;
    if args.json {
        output::print_json(&json::Stat::from(&stat))?;
    } else {
        output::print(&text(&args.log, &stat))?;
    }
    Ok(Outcome::Good)
}

/// Everything, in the order in which one wants to know it.
fn text(path: &Path, stat: &Stat) -> String {
    let mut text = format!("{HEADING}{}{HEADING:#}\n", path.display());
    for (name, value) in facts(stat) {
        let lines = lines(&value, VALUE_WIDTH).join("\n               ");
        let _ = writeln!(text, "  {name:<12} {lines}");
    }
    if let Some(reason) = &stat.poison {
        let _ = writeln!(text, "\n{ALERT}{}{ALERT:#}", poisoned(reason));
    }
    if let Some(holder) = stat.held_back_by() {
        let _ = writeln!(text, "\n{ALERT}{}{ALERT:#}", held_back(stat, holder));
    }
    text.push_str(&holds::alerts(&stat.holds));
    text.push_str(&commits::histogram(&stat.commits));
    let _ = write!(text, "\n{}", segments(&stat.segments));
    if stat.participants.is_empty() {
        text.push_str("\n  nobody is attached\n");
    } else {
        text = text + "\n" + &participants(&stat.participants);
    }
    text + &holds::table(&stat.holds)
}

fn facts(stat: &Stat) -> Vec<(&'static str, String)> {
    let kept = stat.published.get().saturating_sub(stat.begin.get());
    let unpublished = stat.tail.get().saturating_sub(stat.published.get());
    let published = format!("{}, {} since begin", stat.published, bytes(kept));
    let undurable = stat.published.get().saturating_sub(stat.durable.get());
    let mut durable = stat.durable.to_string();
    if undurable > 0 {
        let _ = write!(durable, ", {} less than published", bytes(undurable));
    }
    let mut tail = stat.tail.to_string();
    if unpublished > 0 {
        let _ = write!(tail, ", {} in flight", bytes(unpublished));
    }
    let mut facts = vec![
        ("begin", stat.begin.to_string()),
        ("durable", durable),
        ("published", published),
        ("tail", tail),
        ("checkpoint", checkpoint(stat)),
        ("layout", stat.layout.to_string()),
        ("filesystem", stat.filesystem.clone()),
        ("preallocate", format!("{}: {}", stat.preallocate, stat.preallocate_reason)),
        ("fill", format!("{}: {}", stat.fill, stat.fill_reason)),
        ("segments", format!("of {} each", bytes(stat.segment_capacity_bytes))),
        ("prepared", format!("{} ahead", count(commits::prepared_segments(stat), "segment"))),
    ];
    facts.extend(policy::facts(stat));
    facts.extend(commits::facts(&stat.commits));
    if stat.repairs > 0 {
        let records = count(stat.repairs, "reservation");
        let space = bytes(stat.repaired_bytes);
        facts.push(("repaired", format!("{records} of the dead, {space}")));
    }
    if stat.dropped > 0 {
        let records = count(stat.dropped, "record");
        facts.push(("dropped", format!("{records}, when there was no space")));
    }
    facts
}

fn checkpoint(stat: &Stat) -> String {
    if stat.checkpoint == Lsn::ZERO { "none".into() } else { stat.checkpoint.to_string() }
}

fn poisoned(reason: &str) -> String {
    format!(
        "poisoned: {reason}; nothing more can be made durable until every process has closed the \
         log and one has opened it again"
    )
}

fn held_back(stat: &Stat, holder: &ParticipantStat) -> String {
    let pid = holder.pid;
    let (is, then) = match (holder.alive, holder.stopped) {
        (false, _) => ("died", "readers go past it, and the next who writes pads it"),
        (true, true) => ("is stopped", "until it goes on or is killed"),
        (true, false) => ("is busy", "until it has filled it"),
    };
    format!("published is held back at {} by process {pid}, which {is}: {then}", stat.published)
}

fn segments(segments: &[SegmentStat]) -> String {
    let mut table = Table::new(&[
        ("segment", Align::Left),
        ("state", Align::Left),
        ("first lsn", Align::Right),
        ("end lsn", Align::Right),
        ("file", Align::Right),
        ("on disk", Align::Right),
    ]);
    for segment in segments {
        let name = segment.path.file_name().unwrap_or_default();
        table.row([
            name.to_string_lossy().into_owned(),
            segment.state.to_string(),
            segment.first_lsn.to_string(),
            segment.end_lsn.to_string(),
            bytes(segment.file_bytes),
            bytes(segment.allocated_bytes),
        ]);
    }
    table.render()
}

fn participants(participants: &[ParticipantStat]) -> String {
    let mut table = Table::new(&[
        ("pid", Align::Right),
        ("participant", Align::Left),
        ("records in flight", Align::Right),
        ("bytes", Align::Right),
        ("from lsn", Align::Right),
    ]);
    for participant in participants {
        let in_flight = &participant.in_flight;
        let first = in_flight.iter().map(|flight| flight.first_lsn).min();
        table.row([
            participant.pid.to_string(),
            liveness(participant).into(),
            in_flight.len().to_string(),
            bytes(in_flight.iter().map(|flight| flight.bytes).sum()),
            first.map_or_else(|| "-".into(), |lsn| lsn.to_string()),
        ]);
    }
    table.render()
}

fn liveness(participant: &ParticipantStat) -> &'static str {
    match (participant.alive, participant.stopped) {
        (false, _) => "dead",
        (true, true) => "stopped",
        (true, false) => "alive",
    }
}
