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
use crate::files::frames::{self, Scan, Zeros};
use crate::files::window::Window;
use crate::format::commit_record::{CommitRecord, RECORD_LEN};
use crate::format::frame::{ALIGNMENT, Kind};
use crate::format::identity::CutCheckpoint;
use crate::format::segment::{HEADER_LEN, path};
use crate::log::layout::framed::staged;
use crate::log::open::zero_tail;
use crate::log::repair::pad::{self, Reason};
use crate::log::state::core::Core;
use crate::log::state::positions::{Access, Evidence, Loss, Positions, Recovered};
use crate::lsn::Range;
use crate::{Error, ErrorKind, Lsn, Result};

/// Bytes of a segment read at a time in search of commit records.
const STEP: usize = 256 << 10;

/// Where a framed log begins and ends.
pub(crate) fn find_end(
    core: &Arc<Core>,
    firsts: &[Lsn],
    evidence: Evidence<'_>,
    access: Access,
) -> Result<Positions> {
    let Evidence { loss, cut, reserved, .. } = evidence;
    let mut zeros = Zeros::default();
    let newest_record @ (_, record) = find_record(core, &mut zeros, firsts, Lsn::MAX)?;
    let noted = noted_begin(core, firsts)?.max(record.begin);
    let firsts = without_trimmed(core, firsts, noted, access)?;
    let (oldest, newest) = (firsts[0], firsts[firsts.len() - 1]);
    core.files.check_contiguous(&firsts)?;
    core.files.header(oldest)?;
    if noted != Lsn::ZERO && core.files.segment_of(noted) < oldest {
        // The segment in which the log begins is gone: opening it gives the error.
        core.open_to_read(core.files.segment_of(noted))?;
    }
    let begin = noted.max(oldest);
    let durable = record.durable.max(begin);
    let limit = core.files.segment_end(newest);
    if begin > limit {
        return Err(begins_beyond(core, oldest, begin, limit));
    }
    let mut window = Window::new(Arc::clone(core));
    let from = start_of_scan(core, &mut window, begin, durable, limit)?;
    let end_in_segments = frames::end_of_row(&core.files, &mut window, from, limit, reserved)?;
    if end_in_segments < durable {
        return Err(damage(core, end_in_segments, durable));
    }
    let mut end = staged::end_behind(&core.files, evidence, end_in_segments, limit)?;
    let (mut cut_bytes, mut padded_bytes) = (0, 0);
    let holes = reserved.iter().filter(|range| range.end() <= end);
    let from = holes.clone().map(|hole| hole.start).min().unwrap_or(end);
    if access == Access::Change {
        staged::write_behind(&core.files, end_in_segments, end)?;
        for hole in holes {
            padded_bytes += hole.len;
            pad::write(core, *hole, Reason::Died)?;
        }
        window.forget();
    }
    match loss {
        Loss::Words => {
            (end, padded_bytes) = behind_holes(core, &mut window, end, limit, access)?;
        }
        Loss::Power => {
            cut_bytes = torn_len(core, &mut zeros, end, limit)?;
            if access == Access::Change {
                let zeros = zeros.known(&core.files, end).map(|zeros| zeros.max(end));
                zero_tail::write_to(&core.files.dir, &core.files.geometry, end, zeros, &mut false)?;
            }
        }
    }
    let recovered = Recovered { durable, cut_bytes, padded_bytes, from };
    let durable = if loss == Loss::Power { end } else { durable };
    let newest = if loss == Loss::Power { Lsn::new(end.get().max(1) - 1) } else { newest };
    let allocated_end = core.files.segment_end(newest).max(core.files.segment_end(oldest));
    let checkpoint = checkpoint_before(core, &mut zeros, &firsts, newest_record, (end, cut))?;
    let staged_from = if access == Access::Change { end } else { end_in_segments };
    Ok(Positions { begin, durable, tail: end, staged_from, allocated_end, checkpoint, recovered })
}

/// The checkpoint of the newest commit record; where that has arrived without what lies in front of
/// it, the one before, which was acknowledged. Of a log that was cut since, the one noted then.
fn checkpoint_before(
    core: &Core,
    zeros: &mut Zeros,
    firsts: &[Lsn],
    newest: (Lsn, CommitRecord),
    (end, cut): (Lsn, CutCheckpoint),
) -> Result<Lsn> {
    let is_there = newest.1.checkpoint < end;
    let (at, record) = if is_there { newest } else { find_record(core, zeros, firsts, end)? };
    Ok(if at < cut.at { cut.checkpoint } else { record.checkpoint })
}

/// Where the commit record is that knows of most, in the newest segment that has any, and what it
/// says; zeros where there is none. Of those alone whose segment begins and whose checkpoint lies
/// before `limit`.
fn find_record(
    core: &Core,
    zeros: &mut Zeros,
    firsts: &[Lsn],
    limit: Lsn,
) -> Result<(Lsn, CommitRecord)> {
    let firsts = if core.files.geometry.has_commits { firsts } else { &[] };
    for first in firsts.iter().rev().filter(|first| **first < limit) {
        if let Some(found) = last_record(core, *first, zeros.after(core, *first), limit)? {
            return Ok(found);
        }
    }
    Ok(Default::default())
}

/// The last commit record in the segment at `first` that starts before `zeros` and whose checkpoint
/// lies before `limit`. No other knows of more: they are put there in turn, and `durable` only
/// grows.
fn last_record(
    core: &Core,
    first: Lsn,
    zeros: Lsn,
    limit: Lsn,
) -> Result<Option<(Lsn, CommitRecord)>> {
    let segment = core.open_to_read(first)?;
    let mut bytes = vec![0; STEP + RECORD_LEN as usize];
    let mut end = zeros.get().next_multiple_of(ALIGNMENT);
    while end > first.get() {
        let start = end.saturating_sub(STEP as u64).max(first.get());
        let wanted = (end + RECORD_LEN).min(core.files.segment_end(first).get()) - start;
        // Pieces overlap, so that a commit record lies whole in one of them.
        let count = segment.read(Lsn::new(start), &mut bytes[..wanted as usize])?;
        for offset in (0..count.min((end - start) as usize)).step_by(ALIGNMENT as usize).rev() {
            let bytes = &bytes[offset..count];
            let has_length = bytes.first_chunk() == Some(&(RECORD_LEN as u32 - 8).to_le_bytes());
            let at = Lsn::new(start + offset as u64);
            if has_length
                && let Some(record) = CommitRecord::parse(core.files.codec, at, bytes)
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
fn noted_begin(core: &Core, firsts: &[Lsn]) -> Result<Lsn> {
    let mut begin = Lsn::ZERO;
    for first in firsts {
        // The headers of segments that were made last may be torn.
        if let Some(header) = core.files.whole_header(*first)? {
            begin = begin.max(Lsn::new(header.begin.get()));
        }
    }
    Ok(begin)
}

/// Drops segments that a trim was about to remove when the power went.
fn without_trimmed(core: &Core, firsts: &[Lsn], begin: Lsn, access: Access) -> Result<Vec<Lsn>> {
    let is_kept = |first: &Lsn| core.files.segment_end(*first) > begin;
    let (mut kept, gone): (Vec<Lsn>, Vec<Lsn>) = firsts.iter().partition(|first| is_kept(first));
    if kept.is_empty() {
        kept.extend(firsts.last());
        return Ok(kept);
    }
    if access == Access::Change {
        for first in gone {
            let path = path(&core.files.dir, first);
            core.files.dir.unlink(&path).or_os("remove the trimmed segment", &path)?;
        }
    }
    Ok(kept)
}

/// Where to begin walking over frames: at the start of the segment in which `durable` lies, so
/// that damage in the newest segment is noticed, or further back if a long record starts there.
fn start_of_scan(
    core: &Core,
    window: &mut Window,
    begin: Lsn,
    durable: Lsn,
    limit: Lsn,
) -> Result<Lsn> {
    let mut first = core.files.segment_of(durable);
    if first == durable && first > begin {
        return Ok(durable);
    }
    while first > begin {
        if let Scan::Frame { .. } = frames::look_whole(&core.files, window, first, limit)? {
            return Ok(first);
        }
        first = Lsn::new(first.get() - core.files.capacity());
    }
    behind_trimmed_batch(core, window, begin, limit)
}

/// A trim may have left the later records of a batch, which are whole without their batch's start.
pub(crate) fn behind_trimmed_batch(
    core: &Core,
    window: &mut Window,
    begin: Lsn,
    limit: Lsn,
) -> Result<Lsn> {
    let mut lsn = begin;
    while lsn < limit
        && let Scan::Frame { kind: Kind::Member, next, .. } =
            frames::look(&core.files, window, lsn, limit)?
    {
        lsn = next;
    }
    Ok(lsn)
}

/// Where the frames end if there may be holes between them: those of dead writers, which are
/// padded. Reads all that is left of the log, because nothing else knows of them.
fn behind_holes(
    core: &Arc<Core>,
    window: &mut Window,
    mut end: Lsn,
    limit: Lsn,
    access: Access,
) -> Result<(Lsn, u64)> {
    let mut padded_bytes = 0;
    while let Some(next) = frames::find_next(core, end, limit)? {
        let range = Range { start: end, len: next.get() - end.get() };
        padded_bytes += range.len;
        if access == Access::Change {
            pad::write(core, range, Reason::Died)?;
            window.forget();
        }
        end = frames::end_of_row(&core.files, window, next, limit, &[])?;
    }
    Ok((end, padded_bytes))
}

/// Bytes from `end` to the end of the last whole frame that stands behind it.
fn torn_len(core: &Arc<Core>, zeros: &mut Zeros, end: Lsn, limit: Lsn) -> Result<u64> {
    let mut window = Window::new(Arc::clone(core));
    let mut behind = end;
    while let Some(next) = frames::find_next_before(core, zeros, behind, limit)? {
        behind = frames::end_of_row(&core.files, &mut window, next, limit, &[])?;
    }
    Ok(behind.get() - end.get())
}

fn begins_beyond(core: &Core, oldest: Lsn, begin: Lsn, limit: Lsn) -> Error {
    let message = format!(
        "the log is said to begin at {begin}, but its segments end at {limit}; restore the files \
         that are missing"
    );
    Error::new(ErrorKind::Corrupt, message).at_path(&path(&core.files.dir, oldest)).at_lsn(begin)
}

fn damage(core: &Core, lsn: Lsn, durable: Lsn) -> Error {
    let first = core.files.segment_of(lsn);
    let offset = HEADER_LEN + (lsn.get() - first.get());
    let message = format!(
        "the record at position {lsn}, byte {offset} of the file, is damaged although everything \
         up to {durable} had been committed, which no crash explains (a copy that was made while \
         records were committed may be like this); `vellum repair` saves what is readable into a \
         new log"
    );
    Error::new(ErrorKind::Corrupt, message).at_path(&path(&core.files.dir, first)).at_lsn(lsn)
}
