//! Finding the end of a text log from its files, and making them whole again.
//!
//! It ends behind its last byte that is not NUL. After a power cut that may be in the middle of a
//! line that was not committed: the line is ended, so that the next record does not become part of
//! it. Files that had got their names, but no text, are removed: the log goes on before them. Old
//! files that retention had removed, and that a power cut brought back, go by its rules once more.
//!
//! **If the process dies here, or the power goes again**: the next opener finds the same text with
//! some of the places filled already, and does the rest.

use std::sync::Arc;

use crate::error::OsResult;
use crate::files::Files;
use crate::files::open_files::open_file;
use crate::files::text::{last_newline, text_runs};
use crate::files::view::{Still, View};
use crate::format::segment::text_file_name;
use crate::log::open::zero_tail;
use crate::log::repair::pad::{self, Reason};
use crate::log::state::core::Core;
use crate::log::state::positions::{Access, Loss, Positions, Recovered};
use crate::lsn::Range;
use crate::segment::file::Segment;
use crate::segment::list;
use crate::segment::listing::Listing;
use crate::segment::rights::Rights;
use crate::shared::tail_word;
use crate::sys::clock;
use crate::{Lsn, Result};

/// What a closed file gets in which nothing stands.
const EMPTY_MARKER_LEN: u64 = 48;

/// Where a text log begins and ends.
pub(crate) fn find_end(
    log: &Still,
    firsts: &[Lsn],
    loss: Loss,
    access: Access,
) -> Result<Positions> {
    let files = log.files();
    files.check_contiguous(firsts)?;
    let begin = firsts[0];
    let mut newest = firsts[firsts.len() - 1];
    let mut mended = Mended { padded_bytes: 0, from: Lsn::MAX };
    let tail = end_of_text(log, firsts, loss, access, &mut mended)?.max(begin);
    if (loss, access) == (Loss::Power, Access::Change) {
        let listing = Listing::read(&files.dir)?;
        listing.files.iter().try_for_each(|file| file.remove_plain(&files.dir))?;
        zero_tail::write(&files.dir, &files.geometry, tail, &mut false)?;
        newest = list(&files.dir)?.last().copied().unwrap_or(newest);
    }
    // What is there after a power cut will be there after the next.
    let durable = if loss == Loss::Power { tail } else { begin };
    let (allocated_end, checkpoint) = (files.segment_end(newest), Lsn::ZERO);
    let Mended { padded_bytes, from } = mended;
    let recovered = Recovered { durable: begin, cut_bytes: 0, padded_bytes, from: from.min(tail) };
    let staged_from = tail;
    let positions =
        Positions { begin, durable, tail, staged_from, allocated_end, checkpoint, recovered };
    Ok(behind_missing(files, positions, &list(&files.dir)?))
}

/// What was filled in, and from where on lines may not be what they were.
struct Mended {
    padded_bytes: u64,
    from: Lsn,
}

impl Mended {
    /// Notes a place that is filled in: the line in which it begins has lost something.
    fn note(&mut self, files: &Files, range: Range) -> Result<()> {
        self.padded_bytes += range.len;
        if range.start < self.from {
            self.from = start_of_line(files, range.start)?;
        }
        Ok(())
    }
}

/// Where the line begins in which `end` lies, or that ends there. A line that fills a segment goes
/// on in the next.
fn start_of_line(files: &Files, mut end: Lsn) -> Result<Lsn> {
    let listing = Listing::read(&files.dir)?;
    loop {
        let first = files.segment_of(Lsn::new(end.get() - 1));
        match listing.get(first) {
            None => return Ok(end),
            // Nothing tells without decompressing it.
            Some(file) if file.is_compressed() => return Ok(first),
            Some(_) => {}
        }
        if files.open_to_read(first, None)?.data_len()? < end.get() - first.get() {
            return Ok(end);
        }
        match last_newline(files, first, end)? {
            Some(newline) => return Ok(Lsn::new(newline.get() + 1)),
            None => end = first,
        }
    }
}

/// Whether the file is gone that the next record would go to, or that it would have to leave.
/// Nobody is attached.
pub(crate) fn lacks_newest(core: &Core, listing: &Listing) -> bool {
    let active = core.files.segment_of(tail_word::tail(core.words()));
    let is_made = core.words().allocated_end() > active.get();
    core.files.geometry.layout.names_have_times() && is_made && listing.get(active).is_none()
}

/// Has the log go on in the next file where the one is gone that it ended in: positions are not
/// given twice.
pub(crate) fn behind_missing(files: &Files, positions: Positions, firsts: &[Lsn]) -> Positions {
    let active = files.segment_of(positions.tail);
    if positions.allocated_end <= active || firsts.contains(&active) {
        return positions;
    }
    let tail = Lsn::new(positions.tail.get().next_multiple_of(files.capacity()));
    match (firsts.iter().find(|first| **first >= tail), firsts.last()) {
        (Some(first), Some(last)) => {
            Positions { tail: *first, allocated_end: files.segment_end(*last), ..positions }
        }
        _ => Positions { tail, allocated_end: tail, ..positions },
    }
}

/// Where the text ends: behind the last byte that is not NUL.
///
/// NULs before that were reserved by the dead, and are padded; or they were skipped at the end of
/// a segment, and are cut off its file as its writer was about to do.
fn end_of_text(
    log: &Still,
    firsts: &[Lsn],
    loss: Loss,
    access: Access,
    mended: &mut Mended,
) -> Result<Lsn> {
    let files = log.files();
    let mut tail = firsts[0];
    let is_torn = (loss, access) == (Loss::Power, Access::Change);
    let mut newest_plain = None;
    let mut uncut: Vec<(Lsn, Lsn)> = Vec::new();
    let mut listing = Arc::new(Listing::read(&files.dir)?);
    for first in firsts {
        let compressed =
            listing.get(*first).map(|file| file.content_len(&files.dir)).transpose()?.flatten();
        if compressed.is_some() {
            // Closed: whatever comes next goes behind it.
            (tail, newest_plain) = (files.segment_end(*first), None);
            continue;
        }
        let mut text_end = *first;
        for Range { start, len } in text_runs(log, &mut listing, *first)? {
            if start > text_end && access == Access::Change {
                let hole = Range { start: text_end, len: start.get() - text_end.get() };
                mended.note(files, hole)?;
                pad::write_alone(files, hole, Reason::Died)?;
            }
            text_end = Lsn::new(start.get() + len);
        }
        if text_end > *first {
            if access == Access::Change {
                for (first, end) in uncut.drain(..) {
                    let end = if end == first { mark_empty(files, first, mended)? } else { end };
                    let listing = &mut listing;
                    let end = match is_torn {
                        true => end_line(log, listing, first, end, mended)?,
                        false => end,
                    };
                    pad::cut_off(&open_listed(files, listing, first)?, end)?;
                }
            }
            (tail, newest_plain) = (text_end, Some(*first));
        }
        if text_end < files.segment_end(*first) {
            uncut.push((*first, text_end));
        }
    }
    match newest_plain.filter(|_| is_torn) {
        Some(first) => end_line(log, &mut listing, first, tail, mended),
        None => Ok(tail),
    }
}

/// Opens a file to be written to where it was listed: listing the directory for each of thousands
/// of files takes minutes.
fn open_listed(files: &Files, listing: &Listing, first: Lsn) -> Result<Segment> {
    match listing.get(first) {
        Some(file) => Segment::open_unmapped(&files.dir, file.path.clone(), &files.geometry, first),
        None => files.open_unmapped(first, None),
    }
}

/// Puts a short marker into a closed file without text: an empty one would pass for one that
/// somebody has emptied. Returns where the text ends now: where it did, if there is no space for
/// that.
fn mark_empty(files: &Files, first: Lsn, mended: &mut Mended) -> Result<Lsn> {
    let marker = Range { start: first, len: EMPTY_MARKER_LEN };
    mended.note(files, marker)?;
    Ok(pad::write_alone(files, marker, Reason::Died).map_or(first, |()| marker.end()))
}

/// Ends the line before `end`, in the segment at `first`, if a power cut has torn it; returns where
/// it ends now. One that fills its segment ends in the next.
fn end_line(
    log: &Still,
    listing: &mut Arc<Listing>,
    first: Lsn,
    end: Lsn,
    mended: &mut Mended,
) -> Result<Lsn> {
    let files = log.files();
    let mut last = *b"\n";
    if end > first {
        open_file(log, listing, first)?.read(Lsn::new(end.get() - 1), &mut last)?;
    }
    if last == *b"\n" {
        return Ok(end);
    }
    mended.note(files, Range { start: end, len: 1 })?;
    if end == files.segment_end(first) {
        make_missing(files, end)?;
    }
    let segment = files.open_unmapped(files.segment_of(end), None)?;
    segment.write(b"\n", segment.offset_of(end))?;
    Ok(Lsn::new(end.get() + 1))
}

/// Makes the file of the segment at `first`, behind all others, unless it is there.
fn make_missing(files: &Files, first: Lsn) -> Result<()> {
    let listing = Listing::read(&files.dir)?;
    let Some(last) = listing.files.last().filter(|last| last.first < first) else { return Ok(()) };
    let time = clock::seconds().max(listing.newest_time().unwrap_or(0));
    let path = files.dir.join(text_file_name(time, first, true));
    let rights = files.dir.stat(&last.path).and_then(|last| Rights::like(&last, &files.dir));
    let rights = rights.or_os("look at", &last.path)?;
    rights.create(&files.dir, &path, "make the next segment").map(drop)
}
