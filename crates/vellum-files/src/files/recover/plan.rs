//! The changes that recovery makes in the files of a log: a list of steps. All of them are decided
//! before the first one is taken.
//!
//! **If the process dies here**: the next opener reads the files again and decides on the steps
//! that are left.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::OsResult;
use crate::files::Files;
use crate::files::padding::{self, Reason};
use crate::files::recover::positions::Positions;
use crate::files::recover::staged;
use crate::files::recover::zero_tail;
use crate::format::segment::text_file_name;
use crate::lsn::Range;
use crate::segment::listing::{self, Listing};
use crate::segment::rights::Rights;
use crate::sys::clock;
use crate::{Lsn, Result};

/// One change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Removes a file, if it is there.
    Remove(PathBuf),
    /// Copies records from the stage to the segments.
    Unstage {
        /// The first position.
        begin: Lsn,
        /// Where they end.
        end: Lsn,
    },
    /// Fills a range that a dead writer had reserved.
    Pad(Range),
    /// Fills the missing part of the marker before it.
    Continue(Range),
    /// Writes a marker into a text file without text, which ends behind it. Where there is no space
    /// for the marker, the file ends before it.
    Mark(Range),
    /// Writes a newline, perhaps as the first byte of a new file.
    EndLine(Lsn),
    /// Ends the text file of the segment at `first`.
    Cut {
        /// Where the segment begins.
        first: Lsn,
        /// Where its text ends.
        end: Lsn,
    },
    /// Makes everything from `from` on unwritten. Nothing but zeros follows in its segment from
    /// `zeros` on, where that is known.
    Clear {
        /// The first position.
        from: Lsn,
        /// Where zeros begin.
        zeros: Option<Lsn>,
    },
}

/// The changes that recovery makes, and where the log begins and ends then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The changes, in order.
    pub steps: Vec<Step>,
    /// Where the log begins and ends afterwards.
    pub positions: Positions,
}

/// Takes all steps. Returns the files that are there then.
pub fn carry_out(files: &Files, mut listing: Arc<Listing>, steps: &[Step]) -> Result<Arc<Listing>> {
    for step in steps {
        take(files, &mut listing, step)?;
    }
    Ok(listing)
}

fn take(files: &Files, listing: &mut Arc<Listing>, step: &Step) -> Result<()> {
    let open = |listing: &Listing, first| files.open_unmapped(first, listing.path_of(first));
    let fill_for = |range, reason| {
        padding::write_to(files, range, reason, |first| open(listing, first).map(Arc::new))
    };
    let fill = |range| fill_for(range, Reason::Died);
    match *step {
        Step::Remove(ref path) => {
            listing::remove(&files.dir, path)?;
            forget(listing, path);
        }
        Step::Unstage { begin, end } => staged::write_behind(files, begin, end)?,
        Step::Pad(range) => fill(range)?,
        Step::Continue(range) => fill_for(range, Reason::Told)?,
        Step::Mark(range) => {
            let end = fill(range).map_or(range.start, |()| range.end());
            padding::cut_off(&open(listing, range.start)?, end)?;
        }
        Step::EndLine(end) => end_line(files, listing, end)?,
        Step::Cut { first, end } => padding::cut_off(&open(listing, first)?, end)?,
        Step::Clear { from, zeros } => {
            zero_tail::write_to(&files.dir, &files.geometry, listing, (from, zeros), &mut false)?;
            let active = files.segment_of(from);
            Arc::make_mut(listing).files.retain(|file| file.first <= active);
        }
    }
    Ok(())
}

/// Takes a file that was removed out of the listing.
fn forget(listing: &mut Arc<Listing>, path: &Path) {
    let listing = Arc::make_mut(listing);
    listing.files.retain(|file| file.path != path);
    listing.files.iter_mut().for_each(|file| {
        file.plain.take_if(|plain| plain == path);
    });
}

fn end_line(files: &Files, listing: &mut Arc<Listing>, end: Lsn) -> Result<()> {
    let first = files.segment_of(end);
    if first == end {
        make_missing(files, listing, first)?;
    }
    let segment = files.open_unmapped(first, listing.path_of(first))?;
    segment.write(b"\n", segment.offset_of(end))
}

/// Makes the file of the segment at `first`, behind all others, unless it is there.
fn make_missing(files: &Files, listing: &mut Arc<Listing>, first: Lsn) -> Result<()> {
    let Some(last) = listing.files.last().filter(|last| last.first < first) else { return Ok(()) };
    let time = clock::seconds().max(listing.newest_time().unwrap_or(0));
    let path = files.dir.join(text_file_name(time, first, true));
    let rights = files.dir.stat(&last.path).and_then(|last| Rights::like(&last, &files.dir));
    let rights = rights.or_os("look at", &last.path)?;
    rights.create(&files.dir, &path, "make the next segment")?;
    *listing = Arc::new(Listing::read(&files.dir)?);
    Ok(())
}
