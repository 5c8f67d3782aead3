//! `vellum stat`: the state of logs, for people and as JSON.

mod commits;
mod holds;
mod identity;
mod json;
mod logs;
mod overview;
mod policy;
mod prometheus;
mod rates;
mod screen;
mod ship;
mod watch;

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use vellum::stat::{CommitPathStat, ParticipantStat, SegmentStat, SegmentState, Stat};
use vellum::{Gap, Lsn};
use vellum_command::outcome::{BadValue, Outcome, Result, as_typed};
use vellum_command::output;

pub(super) use commits::prepared_segments;
pub(super) use watch::taken;

use super::cursor;
use crate::args::StatArgs;
use crate::table::{ALERT, Align, HEADING, Table, age, bytes, count, line_width, lines};
use logs::{Found, Logs, State};

/// The width of the names before the values of facts.
const NAME_WIDTH: usize = 15;

pub(super) fn run(args: &StatArgs) -> Result<Outcome> {
    let mut logs = Logs::new(args);
    let found = logs.look();
    let show = Show { args, is_one: is_one(&args.logs, &found) };
    if args.positions && !show.is_one {
        let message = "--positions tells those of one log; name one";
        return Err(BadValue(message.into()).into());
    }
    if args.watch {
        return watch::run(&mut logs, &show, found);
    }
    show.print(&show.found(found)?)
}

/// Whether one log was named, which is shown with all there is to tell; those below a directory are
/// shown like many.
fn is_one(named: &[PathBuf], found: &[Found]) -> bool {
    matches!((named, found), ([named], [Found { path, .. }]) if named == path)
}

/// How logs are shown.
struct Show<'a> {
    args: &'a StatArgs,
    is_one: bool,
}

impl Show<'_> {
    /// The fault of one of many logs is reported among them. The fault of the only one is an error.
    fn found(&self, mut found: Vec<Found>) -> Result<Vec<Found>> {
        if self.is_one
            && let Some(log) = found.pop_if(|log| log.state.is_err())
        {
            log.state?;
        }
        Ok(found)
    }

    fn print(&self, found: &[Found]) -> Result<Outcome> {
        if self.args.prometheus {
            output::print(&prometheus::text(found)?)?;
            errors(found).for_each(|error| output::say(as_typed(error)));
            // The numbers show the trouble.
            return Ok(Outcome::Good);
        }
        if self.args.json {
            found.iter().try_for_each(json::print)?;
        } else {
            output::print(&self.text(found))?;
        }
        Ok(outcome(found))
    }

    /// For people.
    fn text(&self, found: &[Found]) -> String {
        match found {
            [Found { path, state: Ok(state) }] if self.is_one => text(self.args, path, state),
            _ => overview::text(found, self.args.watch),
        }
    }
}

fn errors(found: &[Found]) -> impl Iterator<Item = &anyhow::Error> {
    found.iter().filter_map(|log| log.state.as_ref().err())
}

fn outcome(found: &[Found]) -> Outcome {
    let of = |log: &Found| match &log.state {
        Ok(state) if state.stat.gaps.is_empty() => Outcome::Good,
        Ok(_) => Outcome::Damaged,
        Err(error) => Outcome::of(error),
    };
    found.iter().map(of).fold(Outcome::Good, Outcome::and)
}

/// Everything, in the order in which one wants to know it.
fn text(args: &StatArgs, log: &Path, state: &State) -> String {
    let State { stat, disk_bytes, rates, .. } = state;
    let width = line_width();
    let mut text = format!("{HEADING}{}{HEADING:#}\n", log.display());
    let sizes = if args.positions { positions(stat) } else { sizes(*disk_bytes, stat) };
    let rates = rates.as_ref().map(|rates| ("last second", rates.to_string()));
    let facts = facts(stat).into_iter().chain(identity::facts(stat, args.positions));
    for (name, value) in rates.into_iter().chain(sizes).chain(facts) {
        let lines = lines(&value, width - NAME_WIDTH).join("\n               ");
        let _ = writeln!(text, "  {name:<12} {lines}");
    }
    if let Some(reason) = &stat.poison {
        let _ = writeln!(text, "\n{ALERT}{}{ALERT:#}", poisoned(reason));
    }
    if let Some(holder) = stat.held_back_by() {
        let _ = writeln!(text, "\n{ALERT}{}{ALERT:#}", held_back(stat, holder));
    }
    for gap in &stat.gaps {
        let _ = writeln!(text, "\n{ALERT}{}{ALERT:#}", lines(&missing(gap), width).join("\n"));
    }
    if let Some(fault) = &stat.cursors_fault {
        let _ = writeln!(text, "\n{ALERT}{}{ALERT:#}", lines(fault, width).join("\n"));
    }
    text.push_str(&cursor::alerts(&stat.cursors));
    text.push_str(&holds::alerts(&stat.holds));
    text.push_str(&commits::histogram(&stat.commits));
    let _ = write!(text, "\n{}", segments(&stat.segments, args.positions));
    if !stat.cursors.is_empty() {
        let _ = write!(text, "\n{}", cursor::table(&stat.cursors, args.positions));
    }
    if stat.participants.is_empty() {
        text.push_str("\n  nobody is attached\n");
    } else {
        text = text + "\n" + &participants(&stat.participants, args.positions);
    }
    text + &holds::table(&stat.holds, args.positions)
}

/// How much there is, and since when.
fn sizes(on_disk: u64, stat: &Stat) -> Vec<(&'static str, String)> {
    let files = count(stat.segments.len() as u64, "file");
    let mut sizes = vec![("size", format!("{} on disk in {files}", bytes(on_disk)))];
    let written = stat.segments.iter().filter(|segment| segment.state != SegmentState::Prepared);
    if let Some(ago) = written.filter_map(written_ago).min() {
        sizes.push(("written", age(ago)));
    }
    let durable = match stat.unsynced_bytes {
        0 => "all".into(),
        undurable => format!("all but the newest {}", bytes(undurable)),
    };
    sizes.push(("durable", durable));
    let unpublished = stat.tail.get().saturating_sub(stat.published.get());
    if unpublished > 0 {
        sizes.push(("in flight", bytes(unpublished)));
    }
    let behind = stat.published.get().saturating_sub(stat.checkpoint.get());
    let behind = || format!("{} before the end", bytes(behind));
    sizes.push(("checkpoint", checkpoint(stat).map_or_else(|| "none".into(), |_| behind())));
    sizes
}

/// The same as positions.
fn positions(stat: &Stat) -> Vec<(&'static str, String)> {
    let unpublished = stat.tail.get().saturating_sub(stat.published.get());
    let published = format!("{}, {} since begin", stat.published, bytes(stat.kept_bytes));
    let undurable = stat.unsynced_bytes;
    let mut durable = stat.durable.to_string();
    if undurable > 0 {
        let _ = write!(durable, ", {} before published", bytes(undurable));
    }
    let mut tail = stat.tail.to_string();
    if unpublished > 0 {
        let _ = write!(tail, ", {} in flight", bytes(unpublished));
    }
    vec![
        ("begin", stat.begin.to_string()),
        ("durable", durable),
        ("published", published),
        ("tail", tail),
        ("checkpoint", checkpoint(stat).map_or_else(|| "none".into(), |lsn| lsn.to_string())),
    ]
}

fn layout(stat: &Stat) -> String {
    let envelope = if stat.has_envelope { ", each record with time and writer" } else { "" };
    format!("{}{envelope}", stat.layout)
}

fn facts(stat: &Stat) -> Vec<(&'static str, String)> {
    let mut facts = vec![
        ("layout", layout(stat)),
        ("filesystem", stat.filesystem.clone()),
        ("preallocate", format!("{}: {}", stat.preallocate, stat.preallocate_reason)),
        ("fill", format!("{}: {}", stat.fill, stat.fill_reason)),
        ("segments", format!("of {} each", bytes(stat.segment_capacity_bytes))),
        ("prepared", format!("{} ahead", count(commits::prepared_segments(stat), "segment"))),
    ];
    facts.extend(stat.commit_path.as_ref().map(|found| ("commit path", commit_path(found))));
    facts.extend(policy::facts(stat));
    facts.extend(commits::facts(&stat.commits));
    facts.extend(ship::fact(&stat.ship));
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

fn commit_path(found: &CommitPathStat) -> String {
    let since = found.stored_at.and_then(|at| at.elapsed().ok());
    let since = since.map(|ago| format!(", {}", age(ago))).unwrap_or_default();
    format!("{}: {}{since}", found.path, found.reason)
}

fn checkpoint(stat: &Stat) -> Option<Lsn> {
    Some(stat.checkpoint).filter(|lsn| *lsn != Lsn::ZERO)
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
        (false, _) => ("died", "readers skip it, and the next process that writes pads it"),
        (true, true) => ("is stopped", "until it goes on or is killed"),
        (true, false) => ("is busy", "until it has filled it"),
    };
    format!("published is held back at {} by process {pid}, which {is}: {then}", stat.published)
}

fn missing(gap: &Gap) -> String {
    let name = gap.path.file_name().unwrap_or_default();
    format!("{}: {}", name.to_string_lossy(), gap.what())
}

fn segments(segments: &[SegmentStat], has_positions: bool) -> String {
    let mut table = Table::new(&[
        ("segment", Align::Left),
        ("state", Align::Left),
        ("first lsn", Align::Right),
        ("end lsn", Align::Right),
        ("file", Align::Right),
        ("on disk", Align::Right),
        ("written", Align::Right),
    ]);
    for segment in segments {
        let name = segment.path.file_name().unwrap_or_default();
        let ago = written_ago(segment).filter(|_| segment.state != SegmentState::Prepared);
        table.row([
            name.to_string_lossy().into_owned(),
            segment.state.to_string(),
            segment.first_lsn.to_string(),
            segment.end_lsn.to_string(),
            bytes(segment.file_bytes),
            bytes(segment.allocated_bytes),
            ago.map_or_else(|| "-".into(), age),
        ]);
    }
    let hidden: &[&str] = if has_positions { &["written"] } else { &["first lsn", "end lsn"] };
    table.without(hidden).render()
}

/// How long ago the file was written last.
fn written_ago(segment: &SegmentStat) -> Option<Duration> {
    let written = fs::metadata(&segment.path).ok()?.modified().ok()?;
    Some(written.elapsed().unwrap_or_default())
}

fn participants(participants: &[ParticipantStat], has_positions: bool) -> String {
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
    table.without(if has_positions { &[] } else { &["from lsn"] }).render()
}

fn liveness(participant: &ParticipantStat) -> &'static str {
    match (participant.alive, participant.stopped) {
        (false, _) => "dead",
        (true, true) => "stopped",
        (true, false) => "alive",
    }
}
