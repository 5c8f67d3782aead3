//! Finding the end of a framed log after a power cut.
//!
//! A power cut tears what was on its way to the device. The newest commit record tells up to where
//! everything had arrived before: damage behind it is a torn tail, which is cut; damage before it
//! is no crash's doing, and the log is not opened. Nothing before that needs to be read.
//!
//! What is not torn may go on in the stage (`framed::staged`): nobody may have turned off the
//! machine, and only the words are not to be believed. Killed processes then lose nothing.
//!
//! Only the newest segments are looked through for commit records, from the newest one back to the
//! first that has one. Recycled segments that wait beyond the tail hold none that are valid there.
//!
//! **If the process dies here**: see `wipe`.

use std::sync::Arc;

use crate::error::OsResult;
use crate::files::Files;
use crate::files::frames::{self, Scan, Zeros};
use crate::files::view::{Still, View};
use crate::files::window::Window;
use crate::format::commit_record::{CommitRecord, RECORD_LEN};
use crate::format::frame::{ALIGNMENT, Kind};
use crate::format::identity::CutCheckpoint;
use crate::format::segment::{HEADER_LEN, path};
use crate::log::layout::framed::staged;
use crate::log::open::zero_tail;
use crate::log::repair::pad::{self, Reason};
use crate::log::state::positions::{Access, Evidence, Loss, Positions, Recovered};
use crate::lsn::Range;
use crate::{Error, ErrorKind, Lsn, Result};

/// Bytes of a segment read at a time in search of commit records.
const STEP: usize = 256 << 10;

/// Where a framed log begins and ends.
pub(crate) fn find_end(
    log: &Arc<Still>,
    firsts: &[Lsn],
    evidence: Evidence<'_>,
    access: Access,
) -> Result<Positions> {
    let (files, Evidence { loss, cut, reserved, .. }) = (log.files(), evidence);
    let mut zeros = Zeros::default();
    let newest_record @ (_, record) = find_record(&**log, &mut zeros, firsts, Lsn::MAX)?;
    let noted = noted_begin(files, firsts)?.max(record.begin);
    let firsts = without_trimmed(files, firsts, noted, access)?;
    let (oldest, newest) = (firsts[0], firsts[firsts.len() - 1]);
    files.check_contiguous(&firsts)?;
    files.header(oldest)?;
    if noted != Lsn::ZERO && files.segment_of(noted) < oldest {
        // The segment in which the log begins is gone: opening it gives the error.
        files.open_to_read(files.segment_of(noted), None)?;
    }
    let begin = noted.max(oldest);
    let durable = record.durable.max(begin);
    let limit = files.segment_end(newest);
    if begin > limit {
        return Err(begins_beyond(files, oldest, begin, limit));
    }
    let mut window = Window::new(Arc::clone(log));
    let from = start_of_scan(files, &mut window, begin, durable, limit)?;
    let end_in_segments = frames::end_of_row(files, &mut window, from, limit, reserved)?;
    if end_in_segments < durable {
        return Err(damage(files, end_in_segments, durable));
    }
    let mut end = staged::end_behind(files, evidence, end_in_segments, limit)?;
    let (mut cut_bytes, mut padded_bytes) = (0, 0);
    let holes = reserved.iter().filter(|range| range.end() <= end);
    let from = holes.clone().map(|hole| hole.start).min().unwrap_or(end);
    if access == Access::Change {
        staged::write_behind(files, end_in_segments, end)?;
        for hole in holes {
            padded_bytes += hole.len;
            pad::write_alone(files, *hole, Reason::Died)?;
        }
        window.forget();
    }
    match loss {
        Loss::Words => {
            (end, padded_bytes) = behind_holes(log, &mut window, end, limit, access)?;
        }
        Loss::Power => {
            cut_bytes = torn_len(log, &mut zeros, end, limit)?;
            if access == Access::Change {
                let zeros = zeros.known(files, end).map(|zeros| zeros.max(end));
                zero_tail::write_to(&files.dir, &files.geometry, end, zeros, &mut false)?;
            }
        }
    }
    let recovered = Recovered { durable, cut_bytes, padded_bytes, from };
    let durable = if loss == Loss::Power { end } else { durable };
    let newest = if loss == Loss::Power { Lsn::new(end.get().max(1) - 1) } else { newest };
    let allocated_end = files.segment_end(newest).max(files.segment_end(oldest));
    let checkpoint = checkpoint_before(&**log, &mut zeros, &firsts, newest_record, (end, cut))?;
    let staged_from = if access == Access::Change { end } else { end_in_segments };
    Ok(Positions { begin, durable, tail: end, staged_from, allocated_end, checkpoint, recovered })
}

/// The checkpoint of the newest commit record; where that has arrived without what lies in front of
/// it, the one before, which was acknowledged. Of a log that was cut since, the one noted then.
fn checkpoint_before(
    view: &dyn View,
    zeros: &mut Zeros,
    firsts: &[Lsn],
    newest: (Lsn, CommitRecord),
    (end, cut): (Lsn, CutCheckpoint),
) -> Result<Lsn> {
    let is_there = newest.1.checkpoint < end;
    let (at, record) = if is_there { newest } else { find_record(view, zeros, firsts, end)? };
    Ok(if at < cut.at { cut.checkpoint } else { record.checkpoint })
}

/// Where the commit record is that knows of most, in the newest segment that has any, and what it
/// says; zeros where there is none. Of those alone whose segment begins and whose checkpoint lies
/// before `limit`.
fn find_record(
    view: &dyn View,
    zeros: &mut Zeros,
    firsts: &[Lsn],
    limit: Lsn,
) -> Result<(Lsn, CommitRecord)> {
    let firsts = if view.files().geometry.has_commits { firsts } else { &[] };
    for first in firsts.iter().rev().filter(|first| **first < limit) {
        if let Some(found) = last_record(view.files(), *first, zeros.after(view, *first), limit)? {
            return Ok(found);
        }
    }
    Ok(Default::default())
}

/// The last commit record in the segment at `first` that starts before `zeros` and whose checkpoint
/// lies before `limit`. No other knows of more: they are put there in turn, and `durable` only
/// grows.
fn last_record(
    files: &Files,
    first: Lsn,
    zeros: Lsn,
    limit: Lsn,
) -> Result<Option<(Lsn, CommitRecord)>> {
    let segment = files.open_to_read(first, None)?;
    let mut bytes = vec![0; STEP + RECORD_LEN as usize];
    let mut end = zeros.get().next_multiple_of(ALIGNMENT);
    while end > first.get() {
        let start = end.saturating_sub(STEP as u64).max(first.get());
        let wanted = (end + RECORD_LEN).min(files.segment_end(first).get()) - start;
        // Pieces overlap, so that a commit record lies whole in one of them.
        let count = segment.read(Lsn::new(start), &mut bytes[..wanted as usize])?;
        for offset in (0..count.min((end - start) as usize)).step_by(ALIGNMENT as usize).rev() {
            let bytes = &bytes[offset..count];
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

/// Drops segments that a trim was about to remove when the power went.
fn without_trimmed(files: &Files, firsts: &[Lsn], begin: Lsn, access: Access) -> Result<Vec<Lsn>> {
    let is_kept = |first: &Lsn| files.segment_end(*first) > begin;
    let (mut kept, gone): (Vec<Lsn>, Vec<Lsn>) = firsts.iter().partition(|first| is_kept(first));
    if kept.is_empty() {
        kept.extend(firsts.last());
        return Ok(kept);
    }
    if access == Access::Change {
        for first in gone {
            let path = path(&files.dir, first);
            files.dir.unlink(&path).or_os("remove the trimmed segment", &path)?;
        }
    }
    Ok(kept)
}

/// Where to begin walking over frames: at the start of the segment in which `durable` lies, so
/// that damage in the newest segment is noticed, or further back if a long record starts there.
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
pub(crate) fn behind_trimmed_batch(
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
/// padded. Reads all that is left of the log, because nothing else knows of them.
fn behind_holes(
    log: &Arc<Still>,
    window: &mut Window,
    mut end: Lsn,
    limit: Lsn,
    access: Access,
) -> Result<(Lsn, u64)> {
    let mut padded_bytes = 0;
    while let Some(next) = frames::find_next(log, end, limit)? {
        let range = Range { start: end, len: next.get() - end.get() };
        padded_bytes += range.len;
        if access == Access::Change {
            pad::write_alone(log.files(), range, Reason::Died)?;
            window.forget();
        }
        end = frames::end_of_row(log.files(), window, next, limit, &[])?;
    }
    Ok((end, padded_bytes))
}

/// Bytes from `end` to the end of the last whole frame that stands behind it.
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
