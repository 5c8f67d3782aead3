//! Properties of a log after a campaign, and of images of it, in a world like ours.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use vellum::{Create, ErrorKind, Layout, Log, Lsn, Options};

use super::ledger::{Keeps, Ledger};
use super::shape::Shape;
use super::sys::{self, End};
use crate::payload::{self, Payload};
use crate::trace;

/// A check that takes longer hangs.
const SECONDS_MAX: u32 = 30;
const LAST: &[u8] = b"one more, after everything\n";

/// The part that is checked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    Log,
    Image,
    /// An image whose pages were taken one after the other, while lines were stored in them. As
    /// after a power cut, a line of a text log that was not committed may be there in part; the
    /// rule is that of `stress::breaks`.
    Snapshot,
    /// An image whose files, too, were taken one after the other. In a framed log a later one may
    /// vouch for records that an earlier one lacks; then it is said to be damaged, and a repair
    /// saves what was committed before.
    Copy,
    /// The log that such a repair saved: all of it is elsewhere.
    Repaired,
}

/// Looks at everything, in a process of its own; the fault, if there is one.
pub(crate) fn check(
    path: &Path,
    shape: Shape,
    ledger: &Ledger,
    keeps: Keeps,
    what: What,
) -> anyhow::Result<Option<String>> {
    let told = path.with_file_name("fault");
    let child = sys::fork(|| {
        trace::watchdog(SECONDS_MAX);
        match look(path, shape, ledger, keeps, what) {
            Ok(()) => 0,
            Err(fault) => fs::write(&told, fault).map_or(2, |()| 1),
        }
    })?;
    Ok(match sys::wait_for(child)? {
        End::Exited(0) => None,
        End::Exited(1) => Some(fs::read_to_string(&told)?),
        End::Killed(libc::SIGALRM) => Some("the check afterwards hangs".into()),
        end => Some(format!("the check afterwards ended by {end:?}")),
    })
}

fn look(
    path: &Path,
    shape: Shape,
    ledger: &Ledger,
    keeps: Keeps,
    what: What,
) -> Result<(), String> {
    if what == What::Copy && shape.layout() == Layout::Framed && is_damaged(path)? {
        let to = path.with_file_name("repaired");
        vellum::repair(path, &to).map_err(|error| format!("it is not repaired: {error}"))?;
        return look(&to, shape, ledger, keeps, What::Repaired);
    }
    let log = open(path)?;
    let recovery = log.recovery();
    holds(&log, shape, ledger, keeps, what)
        .map_err(|fault| format!("{fault} (recovered: {recovery:?})"))?;
    // The mark of an image may be one that came later than those that were heard of.
    if what == What::Log && !ledger.marks.contains(&log.checkpoint().lsn().get()) {
        return Err(format!(
            "the checkpoint is {}, not of {:?}",
            log.checkpoint().lsn(),
            ledger.marks
        ));
    }
    let lsn = log.append_durable(LAST).map_err(|error| format!("it does not go on: {error}"))?;
    drop(log);
    let log = open(path)?;
    holds(&log, shape, ledger, keeps, what).map_err(|fault| format!("opened again: {fault}"))?;
    let mut reader = log.reader(lsn).map_err(|error| format!("what was added is gone: {error}"))?;
    match reader.next() {
        Ok(Some(record)) if record.payload == LAST => Ok(()),
        answer => Err(format!("what was added reads as {answer:?}")),
    }
}

fn open(path: &Path) -> Result<Log, String> {
    try_open(path).map_err(|error| format!("it does not open: {error}"))
}

fn try_open(path: &Path) -> vellum::Result<Log> {
    Options::default().create(Create::Never).open(path)
}

/// Whether opening or verifying it says so.
fn is_damaged(path: &Path) -> Result<bool, String> {
    match try_open(path).and_then(|log| log.verify()) {
        Ok(report) => Ok(!report.damage.is_empty()),
        Err(error) if error.kind() == ErrorKind::Corrupt => Ok(true),
        Err(error) => Err(format!("it does not open: {error}")),
    }
}

/// Everything owed is there, once, whole, in order and where it was; and nothing is damaged.
fn holds(log: &Log, shape: Shape, ledger: &Ledger, keeps: Keeps, what: What) -> Result<(), String> {
    let report = log.verify().map_err(|error| format!("verify failed: {error}"))?;
    if let Some(damage) = report.damage.first() {
        return Err(format!("{} damaged places, first {damage:?}", report.damage.len()));
    }
    let is_torn = matches!(what, What::Snapshot | What::Copy) && shape.layout() == Layout::Text;
    let found = read(log, shape.layout(), is_torn.then_some(ledger.committed))?;
    let mut newest: HashMap<char, (u32, u64)> = HashMap::new();
    for (payload, lsn) in &found {
        let before = newest.insert(payload.writer, (payload.number, *lsn));
        if before.is_some_and(|(number, _)| number >= payload.number) {
            return Err(format!("{payload:?} at {lsn} comes after {before:?}"));
        }
        // An image is older than the truncation.
        if what == What::Log && ledger.is_cut(payload.writer, payload.number) {
            return Err(format!("{payload:?} at {lsn} was dropped by a truncation"));
        }
    }
    let places: HashMap<(char, u32), u64> =
        found.iter().map(|(payload, lsn)| ((payload.writer, payload.number), *lsn)).collect();
    let (mut owed, mut missing) = (0, Vec::new());
    for (payload, lsn) in ledger.owed(keeps) {
        owed += 1;
        match places.get(&(payload.writer, payload.number)) {
            // Records of a batch are behind its beginning.
            Some(place) if *place >= lsn || what == What::Repaired => {}
            Some(place) => return Err(format!("{payload:?} is at {place}, not {lsn}")),
            None => missing.push((payload, lsn)),
        }
    }
    match missing.first() {
        None => Ok(()),
        Some((payload, lsn)) => Err(format!(
            "{} of {owed} records {} are lost, first {payload:?} at {lsn}; the log is {} to {}, \
             durable {}, {} was committed",
            missing.len(),
            if keeps == Keeps::Appended { "that were appended" } else { "that were committed" },
            log.begin(),
            log.published(),
            log.durable(),
            ledger.committed,
        )),
    }
}

/// All records, which must be whole, but for lines behind `torn_behind`.
fn read(
    log: &Log,
    layout: Layout,
    torn_behind: Option<u64>,
) -> Result<Vec<(Payload, u64)>, String> {
    let mut reader =
        log.reader(Lsn::ZERO).map_err(|error| format!("it cannot be read: {error}"))?;
    let mut found = Vec::new();
    loop {
        match reader.next() {
            Err(error) => return Err(format!("reading stops: {error}")),
            Ok(None) => return Ok(found),
            Ok(Some(record)) if record.payload == LAST => {}
            Ok(Some(record)) if layout == Layout::Text && payload::is_marker(record.payload) => {}
            Ok(Some(record)) => {
                let lsn = record.lsn.get();
                let Some(payload) = Payload::of(record.payload, layout) else {
                    let is_behind = torn_behind.is_some_and(|committed| lsn > committed);
                    if is_behind && !record.payload.contains(&0) {
                        continue;
                    }
                    let start =
                        String::from_utf8_lossy(&record.payload[..record.payload.len().min(60)]);
                    return Err(format!("at {lsn} stands what nobody appended: {start:?}"));
                };
                found.push((payload, lsn));
            }
        }
    }
}
