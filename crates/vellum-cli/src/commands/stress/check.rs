//! What a crash left: is every record good, and does the log go on?

use std::path::Path;

use vellum::{ErrorKind, Log, Options};

use super::numbers::ranges;
use super::payload::Name;
use super::survey::Survey;
use crate::outcome::{Outcome, Result};
use crate::output::{self, Output};

/// Checks append records of this length.
const MARKER_BYTES: u64 = 64;

/// Prints the numbers of the log in `path`, and what is wrong.
pub(super) fn run(path: &Path) -> Result<Outcome> {
    let mut output = Output::new();
    let faults = match open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        Err(error) => vec![error.to_string()],
        Ok(log) => {
            let survey = Survey::of(&log);
            for range in ranges(&survey.sorted_numbers()) {
                output.bytes(format!("{range}\n").as_bytes())?;
            }
            // Known before anything is written, which may end in a crash of its own.
            output.flush()?;
            // What is wrong stays as it was found.
            if survey.faults.is_empty() { go_on(log, survey) } else { survey.faults }
        }
    };
    for fault in &faults {
        output.bytes(format!("BAD {fault}\n").as_bytes())?;
    }
    output.flush()?;
    Ok(if faults.is_empty() { Outcome::Good } else { Outcome::Failed })
}

fn open(path: &Path) -> vellum::Result<Log> {
    Options::new().create(false).open(path)
}

/// Appends a marker, opens the log anew and looks for the same and the marker.
fn go_on(log: Log, mut expected: Survey) -> Vec<String> {
    match append_marker(&log, &mut expected) {
        Ok(()) => {}
        // Recovery has to do without space; a record can't.
        Err(error) if error.kind() == ErrorKind::NoSpace => {
            output::say(format_args!("the check could not append a record: {error}"));
        }
        Err(error) => return vec![format!("the log does not go on: {error}")],
    }
    let path = log.path().to_path_buf();
    drop(log);
    match open(&path) {
        Err(error) => vec![format!("the log does not open again: {error}")],
        Ok(log) => difference(&expected, Survey::of(&log)),
    }
}

fn append_marker(log: &Log, survey: &mut Survey) -> vellum::Result<()> {
    let number = survey.markers.last().map_or(0, |last| last.saturating_add(1));
    let mut payload = Vec::new();
    let bytes = MARKER_BYTES..=MARKER_BYTES;
    Name::Marker { number }.write(&bytes, log.layout(), &mut payload);
    log.append_durable(&payload)?;
    survey.markers.push(number);
    Ok(())
}

fn difference(expected: &Survey, found: Survey) -> Vec<String> {
    if !found.faults.is_empty() {
        return found.faults;
    }
    let mut faults = Vec::new();
    for (what, expected, found) in [
        ("records", &expected.numbers, &found.numbers),
        ("markers of checks", &expected.markers, &found.markers),
    ] {
        if expected != found {
            let [expected, found] = [expected, found].map(|numbers| ranges(numbers).join(" "));
            faults.push(format!("opened again, the log holds {what} {found:?}, not {expected:?}"));
        }
    }
    faults
}
