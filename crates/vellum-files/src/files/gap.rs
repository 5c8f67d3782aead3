//! The gaps of a log: files that a user removed, moved away, emptied, cut short or packed with a
//! program of his own, and damaged ranges.
//!
//! Nothing notes how long a text file was when it was closed. So one that was cut at the end of a
//! line is not told from a shorter one; one that ends in the middle of a line is taken for cut if
//! it was changed after the next one was begun.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::OFlags;

use crate::escape::escaped;
use crate::files::open_files;
use crate::files::view::View;
use crate::format::utc;
use crate::segment::listing::{Listing, SegmentFile};
use crate::segment::names;
use crate::sys::{self, clock};
use crate::{Lsn, Result};

/// A change of a file later than this after the next one was begun is not that of its writers. The
/// names of files tell whole seconds.
const LATE: Duration = Duration::from_secs(2);

/// A stretch of a log that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Gap {
    /// The file; of a text log's that is gone, the pattern of its name.
    pub path: PathBuf,
    /// Its fault, and the remedy.
    pub reason: String,
    /// Where it begins.
    pub from: Lsn,
    /// Where the log continues.
    pub to: Lsn,
    /// How many bytes are missing, at most.
    pub bytes_max: u64,
    /// When the records that are missing were appended, at the earliest; `None` where no name and
    /// no file tells.
    pub after: Option<SystemTime>,
    /// The same, at the latest.
    pub before: Option<SystemTime>,
}

impl Gap {
    /// The fault, the remedy, the size and the time of the missing part: a sentence without its
    /// end.
    pub fn what(&self) -> String {
        let time = |time: SystemTime| {
            let since = time.duration_since(SystemTime::UNIX_EPOCH);
            utc::readable(since.map_or(0, |since| since.as_secs()))
        };
        let mut text = format!("{}: up to {} bytes are missing", self.reason, self.bytes_max);
        match (self.after, self.before) {
            (Some(after), Some(before)) => {
                text += &format!(", from between {} and {}", time(after), time(before));
            }
            (Some(after), None) => text += &format!(", from after {}", time(after)),
            (None, Some(before)) => text += &format!(", from before {}", time(before)),
            (None, None) => {}
        }
        text
    }
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", escaped(self.path.display()), self.what())
    }
}

/// Every closed file that is missing, empty or cut short, of a log in `range` that is filled up to
/// `filled_end`. Looks at names and times, and at the last byte of few files.
pub fn gaps(view: &dyn View, range: Range<Lsn>, filled_end: Lsn) -> Result<Vec<Gap>> {
    let Range { start: begin, end } = range;
    let listing = Listing::read(&view.files().dir)?;
    let mut gaps = Vec::new();
    let mut first = view.files().segment_of(begin);
    while first < end {
        let found = listing.get(first);
        let next = match found {
            Some(_) => view.files().segment_end(first),
            None => behind_missing(&listing, first, end),
        };
        let fault = match found {
            None => Some((begin.max(first), missing(view, first, next))),
            Some(file) if next <= filled_end => cut_short(view, file, &listing),
            Some(_) => None,
        };
        if let Some((from, reason)) = fault {
            gaps.push(gap(view, &listing, from, next.min(end), reason));
        }
        first = next;
    }
    // A file that was removed meanwhile is not missing.
    gaps.retain(|gap| gap.to > view.begin());
    Ok(gaps)
}

/// Where the log continues behind the missing file of `first`: at the next that is there.
fn behind_missing(listing: &Listing, first: Lsn, end: Lsn) -> Lsn {
    let next = listing.files.iter().map(|file| file.first).find(|next| *next > first);
    next.map_or(end, |next| next.min(end))
}

/// The gap of a text log from `from` on, for `reason` if the file is there.
pub fn gap_at(view: &dyn View, from: Lsn, end: Lsn, reason: String) -> Gap {
    let listing = Listing::read(&view.files().dir).unwrap_or_default();
    let first = view.files().segment_of(from);
    if listing.get(first).is_some() {
        return gap(view, &listing, from, view.files().segment_end(from).min(end), reason);
    }
    let to = behind_missing(&listing, from, end);
    gap(view, &listing, from, to, missing(view, first, to))
}

/// The gap of a log from `from` to `to`, of a text log in one file, for `reason` if the file is
/// there.
pub fn gap_between(view: &dyn View, from: Lsn, to: Lsn, reason: String) -> Gap {
    let listing = Listing::read(&view.files().dir).unwrap_or_default();
    let first = view.files().segment_of(from);
    let reason = match listing.get(first) {
        Some(_) => reason,
        None => missing(view, first, first),
    };
    gap(view, &listing, from, to, reason)
}

/// The gap from `lsn` to `to`, the end of its segment, if the file was emptied or cut and ends
/// there.
pub fn gap_behind(view: &dyn View, lsn: Lsn, to: Lsn) -> Option<Gap> {
    let listing = Listing::read(&view.files().dir).ok()?;
    // At the very start of a segment nothing was read of it.
    let file = listing.get(view.files().segment_of(lsn))?;
    let (_, reason) = cut_short(view, file, &listing)?;
    Some(gap(view, &listing, lsn, to, reason))
}

/// The records that were removed in front of a cursor before its reader had finished it.
pub fn removed(view: &dyn View, from: Lsn, to: Lsn, cursor: &str) -> Gap {
    let listing = Listing::read(&view.files().dir).unwrap_or_default();
    let reason = format!("removed before the reader of cursor {cursor} had finished it");
    gap(view, &listing, from, to, reason)
}

fn gap(view: &dyn View, listing: &Listing, from: Lsn, to: Lsn, reason: String) -> Gap {
    let first = view.files().segment_of(from);
    let path = open_files::segment_path(view, first);
    let (after, before) = times(view, listing, from, to);
    let bytes_max = bytes_max(view, from, to);
    Gap { path, reason, from, to, bytes_max, after, before }
}

/// How much can be missing: no file of a text log is longer than its limit, and positions continue
/// at the next segment.
fn bytes_max(view: &dyn View, from: Lsn, to: Lsn) -> u64 {
    let len = to.get().saturating_sub(from.get());
    match view.text_len_max() {
        Some(limit) => {
            let files = len.div_ceil(view.files().capacity());
            let before = from.get() - view.files().segment_of(from).get();
            len.min(files.saturating_mul(limit).saturating_sub(before))
        }
        None => len,
    }
}

/// Between which times the records from `from` to `to` were appended.
fn times(
    view: &dyn View,
    listing: &Listing,
    from: Lsn,
    to: Lsn,
) -> (Option<SystemTime>, Option<SystemTime>) {
    let next = listing.files.iter().find(|file| file.first >= to && file.first > from);
    let before = next.and_then(|file| file.time).map(clock::time_of);
    let first = view.files().segment_of(from);
    let own = listing.get(first).filter(|_| view.files().geometry.layout.names_have_times());
    let after = match own {
        // The time of the file itself came first.
        Some(own) => own.time.map(clock::time_of),
        None => listing.files.iter().rfind(|file| file.first < first).and_then(|file| {
            let changed = changed(view, file).filter(|_| file.time.is_some());
            changed.filter(|_| !file.is_compressed()).or_else(|| file.time.map(clock::time_of))
        }),
    };
    (after.map(|after| before.map_or(after, |before| after.min(before))), before)
}

fn changed(view: &dyn View, file: &SegmentFile) -> Option<SystemTime> {
    file.changed_at(&view.files().dir).map(clock::time_of)
}

/// Where a closed text file ends too early, and how that shows.
fn cut_short(view: &dyn View, file: &SegmentFile, listing: &Listing) -> Option<(Lsn, String)> {
    if !view.files().geometry.layout.ends_with_records() || file.is_compressed() {
        return None;
    }
    let len = u64::try_from(view.files().dir.stat(&file.path).ok()?.st_size).ok()?;
    let text_len = len.saturating_sub(view.files().geometry.layout.file_header_len());
    if text_len == 0 {
        return Some((file.first.max(view.begin()), "the file is empty; restore it".into()));
    }
    let next = listing.files.iter().find(|other| other.first > file.first)?;
    let begun = clock::time_of(next.time?);
    if text_len >= view.files().capacity() || changed(view, file)? <= begun + LATE {
        return None;
    }
    if last_byte(view, &file.path)? == b'\n' {
        return None;
    }
    let reason = "the file ends in the middle of a line, and was changed after the next one was \
                  begun; restore it";
    Some((Lsn::new(file.first.get() + text_len), reason.into()))
}

fn last_byte(view: &dyn View, path: &Path) -> Option<u8> {
    let file = view.files().dir.open_file(path, OFlags::RDONLY).ok()?;
    let mut byte = [0];
    let last = sys::file::len(&file).ok()?.checked_sub(1)?;
    (sys::file::read_up_to_at(&file, &mut byte, last).ok()? == 1).then_some(byte[0])
}

/// The reason of a gap for the files from `first` to `to`, which are not there.
fn missing(view: &dyn View, first: Lsn, to: Lsn) -> String {
    let count = to.get().saturating_sub(first.get()).div_ceil(view.files().capacity());
    if count > 1 {
        return format!("{count} files are missing from here on; restore them");
    }
    let number = format!("{:016x}", first.get());
    let packed = names(&view.files().dir)
        .unwrap_or_default()
        .into_iter()
        .find(|name| name.contains(&number));
    match packed {
        Some(name) => {
            let name = escaped(name);
            format!("the file is missing; {name} may be it: unpack it, or give it its name back")
        }
        None => "the file is missing; restore it".into(),
    }
}
