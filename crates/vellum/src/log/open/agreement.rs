//! Whether the shared words agree with the files: with the segments, and with the stage.
//!
//! - Nothing may be at the tail or behind: the words would be older than the segments, and those
//!   bytes would be overwritten.
//! - Everything between `durable` and the tail must be there, but for the ranges of the dead. It is
//!   read whole, unless the page cache is known to be the same: a page of the words may be newer
//!   than a page of any segment, and older than the page of the words beside it.
//! - The ranges of the dead must not hold records: padding it would destroy a record that was
//!   published, if the slot is older than that.
//! - The files must be there that the words say were made.
//!
//! The durable part is not read: if it is damaged, readers get the error, as at any other time.

use std::sync::Arc;

use crate::files::frames::{self, Scan, end_of_reserved};
use crate::files::open_files::open_file;
use crate::files::padding;
use crate::files::recover::framed;
use crate::files::view::{Still, View};
use crate::files::window::Window;
use crate::format::segment::path;
use crate::log::state::core::Core;
use crate::lsn::Range;
use crate::segment::listing::Listing;
use crate::segment::open::ReadSegment;
use crate::shared::commit;
use crate::shared::tail_word;
use crate::shared::words::Words;
use crate::{ErrorKind, Layout, Lsn, Result};

/// The unit that reaches the device at once, if any does.
const SECTOR_LEN: u64 = 512;
/// Bytes of text looked at at a time.
const STEP: usize = 256 << 10;

/// Whether anything is at the tail or behind.
pub(crate) fn is_older_than_segments(core: &Arc<Core>, listing: &Listing) -> Result<bool> {
    let tail = tail_word::tail(core.words());
    let allocated_end = allocated_end(core);
    let still = Still::of(&core.files);
    let active = core.files.segment_of(tail);
    // Records follow one another, so the first shows all. The maker of a file behind those may have
    // died when the file had its name: the next one is made in its place.
    let is_asked = |first: Lsn| {
        first >= active
            && (!core.files.geometry.layout.has_every_segment()
                || first <= core.files.segment_end(active)
                || first >= allocated_end)
    };
    for file in listing.files.iter().filter(|file| is_asked(file.first)) {
        let from = tail.max(file.first);
        let is_used = match core.files.geometry.layout {
            Layout::Framed => {
                is_frame(&still, from, core.files.segment_end(allocated_end.max(from)))?
            }
            _ => file.is_compressed() || has_text(&*still, file.first, from)?,
        };
        if is_used {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a whole frame starts at `lsn`. A range that cannot be read is an error, for the words
/// may be right.
fn is_frame(view: &Arc<impl View>, lsn: Lsn, limit: Lsn) -> Result<bool> {
    let mut window = Window::new(Arc::clone(view));
    match frames::look_whole(view.files(), &mut window, lsn, limit) {
        Ok(found) => Ok(matches!(found, Scan::Frame { .. })),
        Err(error) if error.kind() == ErrorKind::Io => Err(error),
        Err(_) => Ok(false),
    }
}

/// Whether the text segment at `first` holds anything but NULs from `from` on.
fn has_text(view: &dyn View, first: Lsn, from: Lsn) -> Result<bool> {
    let segment = open_file(view, &mut Arc::default(), first)?;
    let mut bytes = vec![0; STEP];
    let (mut at, end) = (from, view.files().segment_end(first));
    // A file may be long and hold nothing.
    while let Some(data) = segment.next_data(at)?.filter(|data| *data < end) {
        at = data;
        let count = segment.read(at, &mut bytes)?;
        if bytes[..count].iter().any(|byte| *byte != 0) {
            return Ok(true);
        }
        if count < bytes.len() {
            return Ok(false);
        }
        at = Lsn::new(at.get() + count as u64);
    }
    Ok(false)
}

/// The page cache that the words were stored in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cache {
    /// It is the one there is: the control file has stayed in memory. So nothing of the segments is
    /// older than it was.
    Kept,
    Unknown,
}

/// Whether everything from `durable` on is there, as the words say; with a page cache that was kept
/// only the last segment is read, or the stage. No process is attached.
pub(crate) fn is_whole(core: &Arc<Core>, listing: &Arc<Listing>, cache: Cache) -> Result<bool> {
    let tail = tail_word::tail(core.words());
    let durable = commit::durable(&core.words().commits).max(core.begin());
    let base = match cache {
        Cache::Kept => start_of_newest(core, durable, tail)?,
        Cache::Unknown => durable,
    };
    let reserved = reserved(core.words());
    if reserved.iter().any(|range| range.start < durable || range.end() > tail) {
        return Ok(false);
    }
    match core.files.geometry.layout {
        Layout::Framed => {
            Ok(has_segments(core, listing, base)? && is_row_of_frames(core, base, tail, &reserved)?)
        }
        _ => is_text(core, listing, base, tail, &reserved),
    }
}

/// Where the last segment begins, or the one in which a record begins that continues there; not
/// before `base`, and there in a log that is staged.
fn start_of_newest(core: &Arc<Core>, base: Lsn, tail: Lsn) -> Result<Lsn> {
    let mut first = core.files.segment_of(Lsn::new(tail.get() - 1));
    if core.commits.stage.is_some() || first <= base {
        return Ok(base);
    }
    while core.files.geometry.layout.has_frames() && !is_frame(core, first, tail)? {
        // The row is not whole, and there may be no file for a long way.
        if !core.files.dir.holds(&path(&core.files.dir, first)) {
            return Ok(base);
        }
        first = Lsn::new(first.get() - core.files.capacity());
        if first <= base {
            return Ok(base);
        }
    }
    Ok(first)
}

pub(crate) fn allocated_end(core: &Core) -> Lsn {
    Lsn::new(core.words().allocated_end())
}

/// The ranges that the dead had reserved.
pub(crate) fn reserved(words: &Words) -> Vec<Range> {
    let seen = tail_word::load(words);
    let slots = 0..tail_word::used_slots(words);
    slots.filter_map(|slot| tail_word::granted(words, slot, seen)).collect()
}

/// Whether whole frames, and reserved ranges, lead from `base` to exactly `tail`, and nothing is
/// behind.
fn is_row_of_frames(core: &Arc<Core>, base: Lsn, tail: Lsn, reserved: &[Range]) -> Result<bool> {
    let limit = core.files.segment_end(tail.max(core.ready_end()).min(allocated_end(core)));
    if !is_clear(core, tail, limit, reserved)? {
        return Ok(false);
    }
    // The bytes that should be in the stage may be in the segment already: then they count.
    if core.commits.stage.is_some() && !is_clear(&Still::of(&core.files), tail, limit, reserved)? {
        return Ok(false);
    }
    let mut window = Window::new(Arc::clone(core));
    let from = match base == core.begin() {
        true => framed::behind_trimmed_batch(&core.files, &mut window, base, tail)?,
        false => base,
    };
    Ok(frames::end_of_row(&core.files, &mut window, from, tail, reserved)? == tail)
}

/// Whether no whole frame is at `tail` or behind, and none in a range that was reserved.
fn is_clear(view: &Arc<impl View>, tail: Lsn, limit: Lsn, reserved: &[Range]) -> Result<bool> {
    if is_frame(view, tail, limit)? || frames::find_next(view, tail, limit)?.is_some() {
        return Ok(false);
    }
    for range in reserved {
        if is_filled(view, *range)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether the files are there of all segments from `base` on that were made.
fn has_segments(core: &Core, listing: &Listing, base: Lsn) -> Result<bool> {
    let firsts = (core.files.segment_of(base).get()..allocated_end(core).get())
        .step_by(core.files.capacity() as usize);
    for first in firsts.map(Lsn::new) {
        if listing.get(first).is_none() || core.files.whole_header(first)?.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether whole frames are in a range that was reserved and not published. An unreadable one is
/// none.
fn is_filled(view: &Arc<impl View>, range: Range) -> Result<bool> {
    let mut window = Window::new(Arc::clone(view));
    match frames::end_of_row(view.files(), &mut window, range.start, range.end(), &[]) {
        Err(error) if error.kind() == ErrorKind::Corrupt => Ok(false),
        end => Ok(end? == range.end()),
    }
}

/// Whether text leads to `tail`. Of a file that is closed the length is not known; one that is gone
/// is a gap, of which readers tell.
fn is_text(
    core: &Core,
    listing: &Arc<Listing>,
    base: Lsn,
    tail: Lsn,
    reserved: &[Range],
) -> Result<bool> {
    for range in reserved {
        if !core.files.writes_text() && padding::is_whole_line(core, *range)? {
            return Ok(false);
        }
    }
    let last = core.files.segment_of(Lsn::new(tail.get() - 1));
    let is_asked = |first: Lsn| core.files.segment_end(first) > base && first <= last;
    for file in listing.files.iter().filter(|file| is_asked(file.first) && !file.is_compressed()) {
        let segment = open_file(core, &mut Arc::clone(listing), file.first)?;
        let end = match file.first == last {
            true => tail,
            false => Lsn::new(file.first.get() + segment.data_len()?.min(core.files.capacity())),
        };
        if !is_text_to(&segment, base.max(file.first), end, reserved)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a file holds text from `start` to `end`: a part that was never written back reads as
/// NULs up to the end of a sector, or as a file that is too short.
fn is_text_to(segment: &ReadSegment, start: Lsn, end: Lsn, reserved: &[Range]) -> Result<bool> {
    let next_after = |at: u64, step: u64| (at + 1).next_multiple_of(step).min(end.get());
    let mut bytes = vec![0; STEP];
    let mut at = start.get();
    while at < end.get() {
        let piece_end = next_after(at, STEP as u64);
        let piece = &mut bytes[..(piece_end - at) as usize];
        let count = segment.read(Lsn::new(at), piece)?;
        piece[count..].fill(0);
        let piece_start = at;
        while at < piece_end {
            at = next_after(at, SECTOR_LEN);
            let last = Lsn::new(at - 1);
            let is_nul = piece[(last.get() - piece_start) as usize] == 0;
            if is_nul && end_of_reserved(reserved, last).is_none() {
                return Ok(false);
            }
        }
    }
    Ok(true)
}
