//! Records that must be there after a trial. Each thread has appended records 0, 1, 2, … one after
//! the other, so they are there in this order, each once.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use vellum::{Create, ErrorKind, Log, Lsn, Options};

use super::table::Keeps;
use crate::payload::{self, Payload};
use crate::trace;
use crate::worlds::shape::Shape;
use crate::worlds::sys::{self, End};

/// A check that takes longer hangs.
const SECONDS_MAX: u32 = 120;
const LAST: &[u8] = b"one more, after everything\n";

/// Records that must be there of each letter.
pub(crate) type Owed = HashMap<char, Owing>;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Owing {
    /// So many records.
    pub(crate) count: u64,
    /// Whether one that met an error may be there all the same, and then again.
    pub(crate) may_repeat: bool,
}

/// Looks at everything, in a process of its own; the fault, if there is one.
pub(crate) fn check(
    path: &Path,
    shape: Shape,
    owed: &Owed,
    keeps: Keeps,
    told: &Path,
) -> anyhow::Result<Option<String>> {
    let child = sys::fork(|| {
        trace::watchdog(SECONDS_MAX);
        match look(path, shape, owed, keeps) {
            Ok(()) => 0,
            Err(fault) => fs::write(told, fault).map_or(2, |()| 1),
        }
    })?;
    Ok(match sys::wait_for(child)? {
        End::Exited(0) => None,
        End::Exited(1) => Some(fs::read_to_string(told)?),
        End::Killed(libc::SIGALRM) => Some("the check afterwards hangs".into()),
        end => Some(format!("the check afterwards ended by {end:?}")),
    })
}

fn look(path: &Path, shape: Shape, owed: &Owed, keeps: Keeps) -> Result<(), String> {
    let log = match Options::default().create(Create::Never).open(path) {
        Ok(log) => log,
        Err(_) if keeps == Keeps::Rest => return Ok(()),
        // No process has come so far as to make one.
        Err(error)
            if error.kind() == ErrorKind::NotFound
                && owed.values().all(|owing| owing.count == 0) =>
        {
            return Ok(());
        }
        Err(error) => return Err(format!("it does not open: {error}")),
    };
    if keeps == Keeps::Rest {
        return look_at_rest(&log);
    }
    holds(&log, shape, owed, keeps)?;
    let lsn = log.append_durable(LAST).map_err(|error| format!("it does not go on: {error}"))?;
    drop(log);
    let log = Options::default().create(Create::Never).open(path);
    let log = log.map_err(|error| format!("it does not open again: {error}"))?;
    holds(&log, shape, owed, keeps).map_err(|fault| format!("opened again: {fault}"))?;
    match log.read_at(lsn) {
        Ok(record) if record.payload == LAST => Ok(()),
        answer => Err(format!("what was added reads as {answer:?}")),
    }
}

/// Reads and writes as far as possible: an error is an answer.
fn look_at_rest(log: &Log) -> Result<(), String> {
    let _ = log.verify();
    let Ok(mut reader) = log.reader(log.begin()) else { return Ok(()) };
    reader.skip_damage(true);
    while let Ok(Some(_)) = reader.next() {}
    let _ = log.append_durable(LAST);
    Ok(())
}

fn holds(log: &Log, shape: Shape, owed: &Owed, keeps: Keeps) -> Result<(), String> {
    let report = log.verify().map_err(|error| format!("verify failed: {error}"))?;
    if let Some(damage) = report.damage.first() {
        return Err(format!("{} damaged places, first {damage:?}", report.damage.len()));
    }
    let found = count(log, shape, owed, keeps)?;
    for (letter, Owing { count, .. }) in owed {
        let found = found.get(letter).copied().unwrap_or(0);
        if found < *count {
            return Err(format!(
                "{count} records of {letter} must be there, {found} are; the log is {} to {}, \
                 recovered: {:?}",
                log.begin(),
                log.published(),
                log.recovery(),
            ));
        }
    }
    Ok(())
}

/// How many records of each letter are there, one after the other from the first on.
fn count(log: &Log, shape: Shape, owed: &Owed, keeps: Keeps) -> Result<HashMap<char, u64>, String> {
    let mut reader =
        log.reader(Lsn::ZERO).map_err(|error| format!("it cannot be read: {error}"))?;
    let mut found = HashMap::new();
    // Lines of a text log that were not committed may have got lost one by one.
    let is_torn = keeps == Keeps::Committed && shape.is_text();
    while let Some(record) = reader.next().map_err(|error| format!("reading stops: {error}"))? {
        let (lsn, payload) = (record.lsn, record.payload);
        if payload == LAST || shape.is_text() && payload::is_marker(payload) {
            continue;
        }
        let Some(Payload { writer, number, .. }) = Payload::of(payload, shape.layout()) else {
            let start = String::from_utf8_lossy(&payload[..payload.len().min(60)]);
            match is_torn {
                true => continue,
                false => return Err(format!("at {lsn} stands what nobody appended: {start:?}")),
            }
        };
        let next = found.entry(writer).or_insert(0);
        let number = u64::from(number);
        let owing = owed.get(&writer).copied().unwrap_or(Owing { count: 0, may_repeat: false });
        let is_behind = is_torn && number > *next && *next >= owing.count;
        let is_again = owing.may_repeat && number + 1 == *next;
        if number != *next && !is_behind && !is_again {
            return Err(format!("at {lsn} is record {number} of {writer}, and {next} comes next"));
        }
        *next = number + 1;
    }
    Ok(found)
}
