//! Finding the end of a framed log after a power cut.
//!
//! A power cut tears bytes that were on their way to the device. The newest commit record tells up
//! to where everything had arrived before: damage behind it is a torn tail, which is cut; damage
//! before it is no crash's doing, and the log is not opened. Nothing before that needs to be read.
//!
//! The whole frames may continue in the stage (`recover::staged`): perhaps the machine was not off,
//! and only the words are not to be believed. Killed processes then lose nothing.
//!
//! Only the newest segments are looked through for commit records, from the newest one back to the
//! first that has one. Recycled segments that wait beyond the tail hold none that are valid there.
//!
//! **If the process dies here**: see `recover::plan`.

use std::sync::Arc;

use crate::files::Files;
use crate::files::frames::{self, Scan, Zeros};
use crate::files::recover::plan::{Plan, Step};
use crate::files::recover::positions::{Evidence, Loss, Positions, Recovered};
use crate::files::recover::staged;
use crate::files::view::{Still, View};
use crate::files::window::Window;
use crate::format::commit_record::{CommitRecord, RECORD_LEN};
use crate::format::frame::{ALIGNMENT, Kind};
use crate::format::identity::CutCheckpoint;
use crate::format::segment::{HEADER_LEN, path};
use crate::lsn::Range;
use crate::{Error, ErrorKind, Lsn, Result};

/// Bytes of a segment read at a time in search of commit records.
const STEP: u64 = 256 << 10;

/// Where a framed log begins and ends, and the changes that recovery would make.
pub fn find_end(
    files: &Files,
    firsts: &[Lsn],
    evidence: Evidence<'_>,
) -> Result<(Positions, Plan)> {
    let (log, Evidence { loss, reserved, .. }) = (&Still::of(files), evidence);
    let mut zeros = Zeros::default();
    let (at, record) = newest_record(log, &mut zeros, firsts, Lsn::MAX)?;
    let noted = noted_begin(files, firsts)?.max(record.begin);
    let (firsts, trimmed) = without_trimmed(files, firsts, noted);
    let remove = |first: &Lsn| Step::Remove(path(&files.dir, *first));
    let mut steps: Vec<Step> = trimmed.iter().map(remove).collect();
    let (begin, limit) = extent(files, &firsts, noted)?;
    let durable = record.durable.max(begin);
    let mut window = Window::new(Arc::clone(log));
    let from = start_of_scan(files, &mut window, begin, durable, limit)?;
    let end_in_segments = frames::end_of_row(files, &mut window, from, limit, reserved)?;
    if end_in_segments < durable {
        return Err(damage(files, end_in_segments, durable));
    }
    let mut end = staged::end_behind(files, evidence, end_in_segments, limit)?;
    if end > end_in_segments {
        steps.push(Step::Unstage { begin: end_in_segments, end });
    }
    let mut holes: Vec<Range> = reserved.iter().filter(|hole| hole.end() <= end).copied().collect();
    let from = holes.iter().map(|hole| hole.start).min().unwrap_or(end);
    let mut cut_bytes = 0;
    match loss {
        Loss::Words => end = behind_holes(log, &mut window, end, limit, &mut holes)?,
        Loss::Power => cut_bytes = torn_len(log, &mut zeros, end, limit)?,
    }
    steps.extend(holes.iter().map(|hole| Step::Pad(*hole)));
    if loss == Loss::Power {
        let zeros = zeros.known(files, end).map(|zeros| zeros.max(end));
        steps.push(Step::Clear { from: end, zeros });
    }
    let padded_bytes = holes.iter().map(|hole| hole.len).sum();
    let recovered = Recovered { durable, cut_bytes, padded_bytes, from };
    let newest =
        if loss == Loss::Power { Lsn::new(end.get().max(1) - 1) } else { firsts[firsts.len() - 1] };
    let positions = Positions {
        begin,
        durable: if loss == Loss::Power { end } else { durable },
        tail: end,
        staged_from: end,
        allocated_end: files.segment_end(newest).max(files.segment_end(firsts[0])),
        checkpoint: checkpoint(files, &firsts, (at, record), (end_in_segments, end), evidence.cut)?,
        recovered,
    };
    let seen = Positions { staged_from: end_in_segments, ..positions };
    Ok((seen, Plan { steps, positions }))
}

/// Where a log of these segments begins, and where the last of them ends.
fn extent(files: &Files, firsts: &[Lsn], noted: Lsn) -> Result<(Lsn, Lsn)> {
    let (oldest, newest) = (firsts[0], firsts[firsts.len() - 1]);
    files.check_contiguous(firsts)?;
    files.header(oldest)?;
    if noted != Lsn::ZERO && files.segment_of(noted) < oldest {
        // The segment in which the log begins is gone: opening it gives the error.
        files.open_to_read(files.segment_of(noted), None)?;
    }
    let (begin, limit) = (noted.max(oldest), files.segment_end(newest));
    if begin > limit {
        return Err(begins_beyond(files, oldest, begin, limit));
    }
    Ok((begin, limit))
}

/// The checkpoint of the newest commit record. Where that has arrived without the records in front
/// of it, of the one before, which was acknowledged. Where a truncation has removed it, the one
/// that was noted then. The log ends at `end`, and some of it may be in the stage.
fn checkpoint(
    files: &Files,
    firsts: &[Lsn],
    newest: (Lsn, CommitRecord),
    (staged_from, end): (Lsn, Lsn),
    cut: CutCheckpoint,
) -> Result<Lsn> {
    let log = match staged_from < end {
        true => Still::staged(files, staged_from),
        false => Still::of(files),
    };
    let (at, record) = match newest.1.checkpoint < end {
        true => newest,
        false => newest_record(&log, &mut Zeros::default(), firsts, end)?,
    };
    Ok(if at < cut.at { cut.checkpoint } else { record.checkpoint })
}

/// The position and the content of the newest commit record, in the newest segment that has any;
/// zeros where there is none. Of those alone whose segment begins and whose checkpoint is before
/// `limit`.
fn newest_record(
    view: &Arc<impl View>,
    zeros: &mut Zeros,
    firsts: &[Lsn],
    limit: Lsn,
) -> Result<(Lsn, CommitRecord)> {
    let firsts = if view.files().geometry.has_commits { firsts } else { &[] };
    for first in firsts.iter().rev().filter(|first| **first < limit) {
        let zeros = zeros.after(&**view, *first).min(limit);
        if let Some(found) = last_record(view, *first, zeros, limit)? {
            return Ok(found);
        }
    }
    Ok(Default::default())
}

/// Where the log begins by its newest commit record that can be read; zero where there is none.
pub fn begin_of_commits(view: &Arc<impl View>, firsts: &[Lsn]) -> Lsn {
    let mut zeros = Zeros::default();
    let record = firsts.iter().rev().find_map(|first| {
        let end = zeros.after(&**view, *first);
        last_record(view, *first, end, Lsn::MAX).ok().flatten()
    });
    record.map_or(Lsn::ZERO, |(_, record)| record.begin)
}

/// The last commit record in the segment at `first` that starts before `zeros` and whose checkpoint
/// is before `limit`. No other knows of more: they are put there in turn, and `durable` only
/// grows.
fn last_record(
    view: &Arc<impl View>,
    first: Lsn,
    zeros: Lsn,
    limit: Lsn,
) -> Result<Option<(Lsn, CommitRecord)>> {
    let (files, mut window) = (view.files(), Window::new(Arc::clone(view)));
    let mut end = zeros.get().next_multiple_of(ALIGNMENT);
    while end > first.get() {
        let start = end.saturating_sub(STEP).max(first.get());
        let wanted = (end + RECORD_LEN).min(files.segment_end(first).get()) - start;
        // Pieces overlap, so that a commit record is whole in one of them.
        let bytes = window.fetch(Lsn::new(start), wanted, Lsn::new(start + wanted))?;
        let count = bytes.len();
        for offset in (0..count.min((end - start) as usize)).step_by(ALIGNMENT as usize).rev() {
            let bytes = &bytes[offset..];
            let has_length = bytes.first_chunk() == Some(&(RECORD_LEN as u32 - 8).to_le_bytes());
            let at = Lsn::new(start + offset as u64);
            if has_length
                && let Some(record) = CommitRecord::parse(files.codec, at, bytes)
                && record.checkpoint < limit
            {
                return Ok(Some((at, record)));
            }
        }
        end = start;
    }
    Ok(None)
}

/// Where the newest trim lets the log begin, or zero: noted in the segment that will be the oldest,
/// before the older ones go.
fn noted_begin(files: &Files, firsts: &[Lsn]) -> Result<Lsn> {
    let mut begin = Lsn::ZERO;
    for first in firsts {
        // The headers of segments that were made last may be torn.
        if let Some(header) = files.whole_header(*first)? {
            begin = begin.max(Lsn::new(header.begin.get()));
        }
    }
    Ok(begin)
}

/// The segments that are left, and those that a trim was about to remove when the power went.
fn without_trimmed(files: &Files, firsts: &[Lsn], begin: Lsn) -> (Vec<Lsn>, Vec<Lsn>) {
    let is_kept = |first: &Lsn| files.segment_end(*first) > begin;
    match firsts.iter().any(is_kept) {
        true => firsts.iter().partition(|first| is_kept(first)),
        false => (firsts.last().copied().into_iter().collect(), Vec::new()),
    }
}

/// Where to begin walking over frames: at the start of the segment that contains `durable`, so that
/// damage in the newest segment is noticed, or further back if a long record starts there.
fn start_of_scan(
    files: &Files,
    window: &mut Window,
    begin: Lsn,
    durable: Lsn,
    limit: Lsn,
) -> Result<Lsn> {
    let mut first = files.segment_of(durable);
    if first == durable && first > begin {
        return Ok(durable);
    }
    while first > begin {
        if let Scan::Frame { .. } = frames::look_whole(files, window, first, limit)? {
            return Ok(first);
        }
        first = Lsn::new(first.get() - files.capacity());
    }
    behind_trimmed_batch(files, window, begin, limit)
}

/// A trim may have left the later records of a batch, which are whole without their batch's start.
pub fn behind_trimmed_batch(
    files: &Files,
    window: &mut Window,
    begin: Lsn,
    limit: Lsn,
) -> Result<Lsn> {
    let mut lsn = begin;
    while lsn < limit
        && let Scan::Frame { kind: Kind::Member, next, .. } =
            frames::look(files, window, lsn, limit)?
    {
        lsn = next;
    }
    Ok(lsn)
}

/// Where the frames end if there may be holes between them: those of dead writers, which are
/// added to `holes`. Reads all that is left of the log, because nothing else knows of them.
fn behind_holes(
    log: &Arc<Still>,
    window: &mut Window,
    mut end: Lsn,
    limit: Lsn,
    holes: &mut Vec<Range>,
) -> Result<Lsn> {
    while let Some(next) = frames::find_next(log, end, limit)? {
        holes.push(Range { start: end, len: next.get() - end.get() });
        end = frames::end_of_row(log.files(), window, next, limit, &[])?;
    }
    Ok(end)
}

/// Bytes from `end` to the end of the last whole frame behind it.
fn torn_len(log: &Arc<Still>, zeros: &mut Zeros, end: Lsn, limit: Lsn) -> Result<u64> {
    let mut window = Window::new(Arc::clone(log));
    let mut behind = end;
    while let Some(next) = frames::find_next_before(log, zeros, behind, limit)? {
        behind = frames::end_of_row(log.files(), &mut window, next, limit, &[])?;
    }
    Ok(behind.get() - end.get())
}

fn begins_beyond(files: &Files, oldest: Lsn, begin: Lsn, limit: Lsn) -> Error {
    let message = format!(
        "the log is said to begin at {begin}, but its segments end at {limit}; restore the files \
         that are missing"
    );
    Error::new(ErrorKind::Corrupt, message).at_path(&path(&files.dir, oldest)).at_lsn(begin)
}

fn damage(files: &Files, lsn: Lsn, durable: Lsn) -> Error {
    let first = files.segment_of(lsn);
    let offset = HEADER_LEN + (lsn.get() - first.get());
    let message = format!(
        "the record at position {lsn}, byte {offset} of the file, is damaged although everything \
         up to {durable} had been committed, which no crash explains (a copy that was made while \
         records were committed may be like this); `vellum repair` saves what is readable into a \
         new log"
    );
    Error::new(ErrorKind::Corrupt, message).at_path(&path(&files.dir, first)).at_lsn(lsn)
}
