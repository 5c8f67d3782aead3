//! Properties of a log after a death: records whole, in order, none lost, every byte accounted for.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use vellum::{Layout, Log, Lsn, Preallocate};

use super::scenario::{Case, Expected, Need, Operation};
use crate::payload::{Payload, is_marker};

/// A fault, in words.
pub type Fault = String;

/// Bytes of the envelope of a framed record, and the unit that its length is rounded up to.
const FRAME_UNIT: u64 = 8;
/// Bytes of an envelope, behind the header of a frame.
const ENVELOPE_LEN: u64 = 16;

/// Spares that any log keeps.
const SPARES_MAX: usize = 4;

/// Every record from the oldest on, as a reader gives them.
pub fn read_all(log: &Log) -> Result<Vec<Vec<u8>>, Fault> {
    let mut reader = log.reader(Lsn::ZERO).map_err(|error| format!("no reader: {error}"))?;
    let mut found = Vec::new();
    loop {
        match reader.next() {
            Ok(Some(record)) => found.push(record.payload.to_vec()),
            Ok(None) => return Ok(found),
            Err(error) => return Err(format!("reading failed: {error}")),
        }
    }
}

/// Compares the records with the expected ones.
pub fn records(case: &Case, expected: &Expected, found: &[Vec<u8>]) -> Result<(), Fault> {
    let mut rest = expected.iter();
    // How many of the records of one operation are there, and how many are not.
    let mut counts: BTreeMap<u32, (u32, u32)> = BTreeMap::new();
    let is_record = |bytes: &&Vec<u8>| case.layout == Layout::Framed || !is_marker(bytes);
    for bytes in found.iter().filter(is_record) {
        loop {
            let Some((payload, need)) = rest.next() else {
                return Err(format!("{} is torn, doubled or out of order", name(bytes)));
            };
            let is_it = payload.bytes(case.layout) == *bytes;
            note(payload, *need, is_it, &mut counts)?;
            if is_it {
                break;
            }
        }
    }
    for (payload, need) in rest {
        note(payload, *need, false, &mut counts)?;
    }
    match counts.values().find(|(there, missing)| *there > 0 && *missing > 0) {
        Some((there, missing)) => {
            Err(format!("{there} records of a batch are there and {missing} are not"))
        }
        None => Ok(()),
    }
}

/// The whole lines that a program may have read which follows the files of a text log.
pub struct Seen(Vec<(PathBuf, Vec<u8>)>);

impl Seen {
    /// Looks at the files, where no zeros are written ahead of the text. The lines of a batch that
    /// is not whole go, because all or none of them stay.
    pub fn of(case: &Case, dir: &Path) -> Seen {
        let is_seen = case.layout == Layout::Text && case.preallocate == Preallocate::Sparse;
        if !is_seen || case.operation == Operation::Batch {
            return Seen(Vec::new());
        }
        let lines_of = |path: PathBuf| Some((path.clone(), whole_lines(fs::read(path).ok()?)));
        // Without a directory no reader has read anything.
        Seen(logs(dir).into_iter().flatten().filter_map(lines_of).collect())
    }

    /// Lines that were read stay as long as their file does.
    pub fn stays(&self) -> Result<(), Fault> {
        for (path, seen) in &self.0 {
            let Ok(now) = fs::read(path) else { continue };
            if !now.starts_with(seen) {
                let same = seen.iter().zip(&now).take_while(|(seen, now)| seen == now).count();
                let show = |bytes: &[u8]| name(&bytes[same.min(bytes.len())..]);
                return Err(format!(
                    "a line that stood in its file is gone: {}, now {}",
                    show(seen),
                    show(&now)
                ));
            }
        }
        Ok(())
    }
}

fn whole_lines(mut text: Vec<u8>) -> Vec<u8> {
    text.truncate(text.iter().position(|byte| *byte == 0).unwrap_or(text.len()));
    text.truncate(text.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1));
    text
}

/// Retention takes the oldest files and no others, and leaves as many as the policy keeps.
pub fn kept(case: &Case, dir: &Path, found: &[Vec<u8>]) -> Result<(), Fault> {
    if !matches!(case.operation, Operation::Retain | Operation::BlockRetain) {
        return Ok(());
    }
    let records = case.operation.template_records();
    let is_there = |record: &Payload| found.contains(&record.bytes(case.layout));
    let oldest = records.iter().position(is_there).unwrap_or(records.len());
    if let Some(gone) = records[oldest..].iter().find(|record| !is_there(record)) {
        return Err(format!("{gone:?} was removed, and what is older was not"));
    }
    let Some(closed) = case.operation.retained_files() else { return Ok(()) };
    let entries = fs::read_dir(dir).map_err(|error| format!("cannot list: {error}"))?;
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let count = names.filter(|name| first_of(name).is_some()).count();
    if count < closed as usize + 1 {
        return Err(format!("{count} files are left; {closed} closed ones are to be kept"));
    }
    Ok(())
}

/// Compares the records after a power cut with those before it: a record that was not durable may
/// be gone, with all behind it.
pub fn records_after_power_cut(
    case: &Case,
    expected: &Expected,
    found: &[Vec<u8>],
) -> Result<(), Fault> {
    let is_there = |payload: &Payload| found.contains(&payload.bytes(case.layout));
    let is_lost = |(payload, need): &&(Payload, Need)| *need == Need::Should && !is_there(payload);
    let cut = expected.iter().position(|record| is_lost(&record)).unwrap_or(expected.len());
    if let Some((behind, _)) = expected[cut..].iter().find(|(payload, _)| is_there(payload)) {
        return Err(format!("{behind:?} is there, and {:?} before it is not", expected[cut].0));
    }
    if let Some((lost, _)) = expected[cut..].iter().find(|(_, need)| *need == Need::Must) {
        return Err(format!("committed record {lost:?} is gone"));
    }
    records(case, &expected[..cut].to_vec(), found)
}

fn note(
    payload: &Payload,
    need: Need,
    is_there: bool,
    counts: &mut BTreeMap<u32, (u32, u32)>,
) -> Result<(), Fault> {
    match (need, is_there) {
        (Need::Must | Need::Should, false) => {
            Err(format!("acknowledged record {payload:?} is not where it was"))
        }
        (Need::Never, true) => Err(format!("{payload:?} is there although it was given up")),
        (Need::May(group), _) => {
            let (there, missing) = counts.entry(group).or_default();
            *(if is_there { there } else { missing }) += 1;
            Ok(())
        }
        _ => Ok(()),
    }
}

fn name(bytes: &[u8]) -> String {
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(48)]).into_owned();
    format!("a record of {} bytes that starts {head:?}", bytes.len())
}

/// Verifies the log, which must have nothing in flight, and accounts for every byte of it.
pub fn verified(log: &Log, found: &[Vec<u8>]) -> Result<(), Fault> {
    let (published, tail) = (log.published(), log.tail());
    if published != tail {
        return Err(format!("published {published} stays behind the tail {tail}"));
    }
    let report = log.verify().map_err(|error| format!("verify failed: {error}"))?;
    if let Some(damage) = report.damage.first() {
        return Err(format!("verify found damage: {damage:?}"));
    }
    if (report.begin, report.end) != (log.begin(), tail) {
        return Err(format!("verify looked at {}..{} of ..{tail}", report.begin, report.end));
    }
    if report.records != found.len() as u64 {
        return Err(format!("verify counts {} records, reading {}", report.records, found.len()));
    }
    if log.layout() == Layout::Framed {
        let has_envelope = log.stat().is_ok_and(|stat| stat.has_envelope);
        let head = FRAME_UNIT + if has_envelope { ENVELOPE_LEN } else { 0 };
        let frame = |bytes: &Vec<u8>| (head + bytes.len() as u64).next_multiple_of(FRAME_UNIT);
        let in_frames: u64 = found.iter().map(frame).sum();
        let accounted = in_frames + report.pad_bytes + report.batches * FRAME_UNIT;
        let span = report.end.get() - report.begin.get();
        if accounted != span {
            return Err(format!("{accounted} of {span} bytes are accounted for"));
        }
    }
    Ok(())
}

/// The expected content of a log's directory.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Oldest position.
    pub begin: Lsn,
    /// End of the records that readers see.
    pub tail: Lsn,
    /// End of the segments that exist.
    pub prepared_end: Lsn,
}

impl Extent {
    /// Of an open log.
    pub fn of(log: &Log) -> Result<Extent, Fault> {
        let stat = log.stat().map_err(|error| format!("stat failed: {error}"))?;
        Ok(Extent { begin: stat.begin, tail: stat.tail, prepared_end: stat.prepared_end })
    }
}

/// Checks the files of a log that no process has open.
pub fn files(case: &Case, dir: &Path, extent: Extent, found: &[Vec<u8>]) -> Result<(), Fault> {
    let capacity = case.operation.segment_capacity();
    let segment_of = |lsn: Lsn| lsn.get() / capacity * capacity;
    // The file of a dead preparer waits for the next one, which may not have come where segments
    // are made far ahead: one file under its own name or none.
    let is_far_ahead =
        case.is_staged() || matches!(case.operation, Operation::Prepare | Operation::RecoverStage);
    let ahead = if is_far_ahead { capacity } else { 0 };
    let limit = match case.layout {
        // A text log is left as a plain file, with nothing prepared.
        Layout::Text => segment_of(extent.tail) + capacity,
        _ => extent.prepared_end.get() + ahead,
    };
    let is_known = |name: &str| {
        let is_link = ["current", "current.new"].contains(&name) && case.layout == Layout::Text;
        ["control", "geometry", "lock"].contains(&name)
            || is_link
            || is_far_ahead && name == "segment.new"
            || case.operation.is_of_cursors() && name == "cursors"
    };
    // A process that raised the beginning and died leaves files to the next one that removes some.
    let begin = match case.operation {
        Operation::Retain | Operation::BlockRetain => 0,
        _ => segment_of(extent.begin),
    };
    let mut segments = Vec::new();
    let mut spares = 0;
    for entry in fs::read_dir(dir).map_err(|error| format!("cannot list: {error}"))? {
        let entry = entry.map_err(|error| format!("cannot list: {error}"))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if let Some(first) = first_of(&name) {
            let first = first.map_err(|_| format!("odd file {name}"))?;
            if first < begin || first >= limit {
                return Err(format!("the file {name} lies outside of {extent:?}"));
            }
            segments.push((first, entry.path()));
        } else if name.ends_with(".spare") {
            spares += 1;
        } else if !is_known(&name) {
            return Err(format!("the file {name} is left over"));
        }
    }
    if spares > SPARES_MAX {
        return Err(format!("{spares} spares are too many"));
    }
    segments.sort();
    if let Some(pair) = segments.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        return Err(format!("{pair:?} start at the same position"));
    }
    if case.layout == Layout::Text {
        check_link(dir, segments.last().map(|(_, path)| path))?;
        segments.retain(|(first, _)| *first >= segment_of(extent.begin));
        let mut text = Vec::new();
        for (first, path) in segments {
            let bytes = fs::read(&path).map_err(|error| format!("cannot read: {error}"))?;
            let skipped = extent.begin.get().saturating_sub(first) as usize;
            text.extend_from_slice(bytes.get(skipped..).unwrap_or_default());
        }
        same_text(&text, &found.concat())?;
    }
    Ok(())
}

/// First position of the segment with this file name, if it is one.
fn first_of(name: &str) -> Option<Result<u64, std::num::ParseIntError>> {
    let digits = match name.strip_suffix(".log") {
        Some(name) => {
            let rest = name.split_once('-')?.1;
            rest.strip_suffix("-more").unwrap_or(rest)
        }
        None => name.strip_suffix(".seg")?,
    };
    Some(u64::from_str_radix(digits, 16))
}

/// The link leads to a file after any process has opened the log.
pub fn link(case: &Case, dir: &Path) -> Result<(), Fault> {
    if case.layout != Layout::Text {
        return Ok(());
    }
    let logs = logs(dir).map_err(|error| format!("cannot list: {error}"))?;
    check_link(dir, logs.max().as_ref())
}

/// The files of a text log, in any order.
fn logs(dir: &Path) -> io::Result<impl Iterator<Item = PathBuf>> {
    let is_log = |path: &PathBuf| {
        path.extension().is_some_and(|extension| extension == "log") && !path.is_symlink()
    };
    Ok(fs::read_dir(dir)?.flatten().map(|entry| entry.path()).filter(is_log))
}

/// The link leads to the newest file, unless the process that would have moved it died: then to one
/// before.
fn check_link(dir: &Path, newest: Option<&PathBuf>) -> Result<(), Fault> {
    let target = fs::read_link(dir.join("current")).ok();
    let newest = newest.and_then(|path| path.file_name());
    match target {
        Some(target) if newest.is_none_or(|newest| target.as_os_str() > newest) => {
            Err(format!("the link leads to {target:?}, the newest file is {newest:?}"))
        }
        Some(target) if !dir.join(&target).exists() => {
            Err(format!("the link leads to {target:?}, which is not there"))
        }
        _ => Ok(()),
    }
}

/// The bytes of the files are the lines that were read and nothing else.
fn same_text(text: &[u8], lines: &[u8]) -> Result<(), Fault> {
    if let Some(offset) = text.iter().position(|byte| *byte == 0) {
        return Err(format!("byte {offset} of {} in the text files is NUL", text.len()));
    }
    if text != lines {
        let same = text.iter().zip(lines).take_while(|(a, b)| a == b).count();
        return Err(format!(
            "the text files hold {} bytes, the lines read {}; they differ at byte {same}",
            text.len(),
            lines.len()
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
