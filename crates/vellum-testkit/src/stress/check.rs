//! The check after a crash: is every record good, and can the log continue?

use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};
use vellum::stat::CursorStat;
use vellum::{Create, ErrorKind, Log, Lsn, Options};

use super::cli::say;
use super::files;
use super::numbers::ranges;
use super::payload::Name;
use super::survey::{Entry, Survey};

/// Checks append records of this length.
const MARKER_BYTES: u64 = 64;

/// Prints the numbers of the log in `path`, and its faults; returns whether it has none. `is_torn`
/// tells whether a power cut may have left lines in part.
pub(super) fn run(path: &Path, is_torn: bool) -> Result<bool> {
    let faults = match open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        Err(error) => vec![error.to_string()],
        Ok(log) => {
            let survey = look(&log, is_torn);
            // Known before anything is written, which may end in a crash of its own.
            print(&ranges(&survey.sorted_numbers()))?;
            // A log with faults stays as it is.
            if survey.faults.is_empty() { go_on(log, survey, is_torn) } else { survey.faults }
        }
    };
    let bad: Vec<String> = faults.iter().map(|fault| format!("BAD {fault}")).collect();
    print(&bad)?;
    Ok(bad.is_empty())
}

/// Prints lines; when it returns, all have been handed over.
fn print(lines: &[String]) -> Result<()> {
    let mut output = BufWriter::new(io::stdout().lock());
    let written = lines.iter().try_for_each(|line| writeln!(output, "{line}"));
    written.and_then(|()| output.flush()).context("cannot write to standard output")
}

fn open(path: &Path) -> vellum::Result<Log> {
    Options::default().create(Create::Never).open(path)
}

/// The records of the log, and the faults of its files too.
fn look(log: &Log, is_torn: bool) -> Survey {
    let mut survey = Survey::of(log, is_torn);
    survey.faults.extend(files::faults(log));
    survey.faults.extend(cursor_faults(log));
    survey
}

/// A cursor is neither in front of the trimmed part, as if a commit of it had been undone, nor
/// beyond the end; and it is there if something was trimmed in front of it.
fn cursor_faults(log: &Log) -> Vec<String> {
    let cursors = match log.cursors() {
        Ok(cursors) => cursors,
        Err(error) => return vec![error.to_string()],
    };
    let (begin, end) = (log.begin(), log.published());
    let is_new = log.stat().is_ok_and(|stat| begin.get() == stat.segment_capacity_bytes);
    if cursors.is_empty() && !is_new && log.path().join("cursors").exists() {
        return vec![format!("the log begins at {begin}, and the cursor there is gone")];
    }
    let is_lost = |cursor: &&CursorStat| cursor.lsn < begin || end < cursor.lsn;
    let fault = |cursor: &CursorStat| {
        format!("cursor {} is at {}, and the log holds {begin} to {end}", cursor.name, cursor.lsn)
    };
    cursors.iter().filter(is_lost).map(fault).collect()
}

/// Appends a marker, opens the log anew and looks for the same and the marker.
fn go_on(log: Log, mut expected: Survey, is_torn: bool) -> Vec<String> {
    match append_marker(&log, &mut expected) {
        Ok(()) => {}
        // Recovery has to do without space; a record can't.
        Err(error) if error.kind() == ErrorKind::NoSpace => {
            say(format_args!("the check could not append a record: {error}"));
        }
        Err(error) => return vec![format!("the log does not go on: {error}")],
    }
    let path = log.path().to_path_buf();
    drop(log);
    match open(&path) {
        Err(error) => vec![format!("the log does not open again: {error}")],
        Ok(log) => difference(&expected, look(&log, is_torn), log.begin()),
    }
}

fn append_marker(log: &Log, survey: &mut Survey) -> vellum::Result<()> {
    let number = survey.markers.last().map_or(0, |(_, last)| last.saturating_add(1));
    let mut payload = Vec::new();
    let bytes = MARKER_BYTES..=MARKER_BYTES;
    Name::Marker { number }.write(&bytes, log.layout(), &mut payload);
    let lsn = log.append_durable(&payload)?;
    survey.markers.push((lsn, number));
    Ok(())
}

/// The expected records that are not found behind `begin`: the marker may have had old files
/// removed.
fn difference(expected: &Survey, found: Survey, begin: Lsn) -> Vec<String> {
    if !found.faults.is_empty() {
        return found.faults;
    }
    let mut faults = Vec::new();
    for (what, expected, found) in [
        ("records", &expected.records, &found.records),
        ("records that were not committed", &expected.uncommitted, &found.uncommitted),
        ("markers of checks", &expected.markers, &found.markers),
    ] {
        let is_kept = |entry: &&Entry| entry.0 >= begin;
        if !expected.iter().filter(is_kept).eq(found) {
            let text = |entries: &[Entry]| {
                let numbers: Vec<u64> = entries.iter().map(|(_, number)| *number).collect();
                ranges(&numbers).join(" ")
            };
            let [expected, found] = [expected, found].map(|entries| text(entries));
            faults.push(format!("opened again, the log holds {what} {found:?}, not {expected:?}"));
        }
    }
    faults
}
