//! Where in a log the records of a time are, without reading all of it.
//!
//! | log | source of a time | how it is searched |
//! |---|---|---|
//! | framed, with envelopes | the first record of each segment | bisected: one record read for each step |
//! | framed, without | the notes in segments (`SegmentTime`) | one block read for each segment |
//! | text | the names of the files | the directory is listed |
//!
//! Nothing is stored for this: there is no index file that could be torn, stale or missing.
//!
//! **Clocks** are set, and appends overlap, so times are not in order. With envelopes, a time is
//! believed to be less than [`CLOCK_STEP`] behind any time before it. So the found range is never
//! too small as long as no clock was set back by more. In other logs the time of a file or a
//! segment is taken as it is; the found range is whole files, or whole segments.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::files::frames::{self, Scan};
use crate::files::view::{Still, View};
use crate::files::window::Window;
use crate::files::{Files, starts};
use crate::format::envelope::Envelope;
use crate::format::frame::{HEADER_LEN, Kind};
use crate::format::segment::{SegmentTime, TIME_OFFSET};
use crate::segment::listing::{Listing, SegmentFile};
use crate::{Error, ErrorKind, Lsn, Result};

/// By how much a record may have an earlier time than one before it, and still be found.
pub const CLOCK_STEP: Duration = Duration::from_secs(60);
/// The same in nanoseconds.
pub const CLOCK_STEP_NANOS: u64 = CLOCK_STEP.as_nanos() as u64;
/// Nanoseconds of a second.
pub const SECOND_NANOS: u64 = 1_000_000_000;

/// Nanoseconds since 1970, as far as they can be told.
pub fn nanos(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Between which positions the records of a time are, of a log in `range` that is published up to
/// `published`. Times are in nanoseconds since 1970.
pub fn positions(
    view: &Arc<impl View>,
    range: Range<Lsn>,
    published: Lsn,
    since: Option<u64>,
    until: Option<u64>,
) -> Result<Range<Lsn>> {
    let Range { start: begin, end } = range;
    if begin >= end {
        return Ok(begin..Lsn::MAX);
    }
    let (start, end) = match view.files().geometry.has_envelope {
        true => by_envelopes(view, end, since, until)?,
        false => by_files(view, end, published, since, until)?,
    };
    Ok(start.max(begin)..end)
}

/// The newest segment that starts with a time well before `since`, and the first that starts with
/// one well behind `until`.
fn by_envelopes(
    view: &Arc<impl View>,
    end: Lsn,
    since: Option<u64>,
    until: Option<u64>,
) -> Result<(Lsn, Lsn)> {
    let mut window = Window::of_one(Arc::clone(view));
    let mut first_time = |index| first_time(view.files(), &mut window, index, end);
    let capacity = view.files().capacity();
    let (first, last) = (view.begin().get() / capacity, end.get().div_ceil(capacity));
    let start = match since.map(|since| since.saturating_sub(CLOCK_STEP_NANOS)) {
        Some(since) => bisect(first..last, |i| Ok(first_time(i)?.is_some_and(|t| t < since)))?.0,
        None => first,
    };
    let end = match until.map(|until| until.saturating_add(CLOCK_STEP_NANOS)) {
        Some(until) => bisect(first..last, |i| Ok(first_time(i)?.is_none_or(|t| t < until)))?.1,
        None => last,
    };
    let end = if end == last { Lsn::MAX } else { Lsn::new(end * capacity) };
    Ok((Lsn::new(start * capacity), end))
}

/// Two neighbours of `range`: `is_before` holds for the first, unless that is the first of all, and
/// not for the second, unless that is behind the last.
pub fn bisect(
    range: Range<u64>,
    mut is_before: impl FnMut(u64) -> Result<bool>,
) -> Result<(u64, u64)> {
    let (mut low, mut high) = (range.start, range.end);
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        match is_before(middle)? {
            true => low = middle,
            false => high = middle,
        }
    }
    Ok((low, high))
}

/// The time of the first record of a segment that starts with a frame; `None` where nothing tells.
fn first_time(files: &Files, window: &mut Window, index: u64, end: Lsn) -> Result<Option<u64>> {
    let mut lsn = Lsn::new(index * files.capacity());
    let limit = files.segment_end(lsn).min(end);
    while lsn < limit {
        let next = match frames::look(files, window, lsn, end) {
            Ok(Scan::Frame { kind: Kind::Record | Kind::Member, payload_len, .. }) => {
                let frame = window.fetch(lsn, HEADER_LEN as u64 + payload_len, end)?;
                let envelope = frame.get(HEADER_LEN..).and_then(Envelope::of);
                return Ok(envelope.map(|envelope| envelope.nanos));
            }
            Ok(Scan::Frame { next, .. }) => next,
            // The rest of a longer record, or the space of a writer that died.
            Ok(Scan::Unwritten | Scan::Invalid(_)) => return Ok(None),
            Err(error) if error.kind() == ErrorKind::Corrupt => return Ok(None),
            Err(error) => return Err(error),
        };
        lsn = next;
    }
    Ok(None)
}

/// Whole files, by the times that are known of them.
fn by_files(
    view: &Arc<impl View>,
    end: Lsn,
    published: Lsn,
    since: Option<u64>,
    until: Option<u64>,
) -> Result<(Lsn, Lsn)> {
    let are_named = view.files().geometry.layout.names_have_times();
    let files = if are_named { named_times(&**view, end)? } else { noted_times(&**view, end)? };
    if files.is_empty() {
        return Err(timeless(view.files()));
    }
    let mut window = Window::of_one(Arc::clone(view));
    let mut start = view.begin();
    for (first, time) in files.iter().rev().filter(|_| since.is_some()) {
        let is_before = since.is_some_and(|since| *time <= since);
        // A text log has no marks between its bytes, so any position in it will do.
        if is_before
            && (are_named || starts::starts_record(&**view, &mut window, *first, published)?)
        {
            start = *first;
            break;
        }
    }
    let beyond = until.and_then(|until| files.iter().find(|(_, time)| *time >= until));
    let end = match beyond {
        None => Lsn::MAX,
        Some((first, _)) if are_named => *first,
        // Its time was noted while it was written, and so may be later than its first records.
        Some((first, _)) => view.files().segment_end(*first),
    };
    Ok((start, end))
}

/// Segments in which a time is noted, oldest first: all records before one are older than that.
fn noted_times(view: &dyn View, end: Lsn) -> Result<Vec<(Lsn, u64)>> {
    let mut found = Vec::new();
    let mut first = view.files().segment_of(view.begin());
    while first < end {
        match view.files().noted_time(first) {
            Ok(Some(seconds)) => found.push((first, seconds.saturating_mul(SECOND_NANOS))),
            Ok(None) => {}
            Err(error) if view.files().is_told_missing(&error) => {
                first = view.files().behind_missing(first, end);
                continue;
            }
            // Gone or damaged: it tells nothing.
            Err(error) if matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::NotFound) => {}
            Err(error) => return Err(error),
        }
        first = view.files().segment_end(first);
    }
    Ok(found)
}

/// Text files with their times, oldest first: of the first record of each, or of a later moment
/// where a clock was set back.
fn named_times(view: &dyn View, end: Lsn) -> Result<Vec<(Lsn, u64)>> {
    let begin = view.files().segment_of(view.begin());
    let files = Listing::read(&view.files().dir)?.files.into_iter();
    let files = files.filter(|file| begin <= file.first && file.first < end);
    let time = |time: u64| time.saturating_mul(SECOND_NANOS);
    Ok(files.filter_map(|file| Some((file.first, time(file.time?)))).collect())
}

impl Files {
    /// The time that is noted in a segment: records before it are older.
    pub fn noted_time(&self, first: Lsn) -> Result<Option<u64>> {
        let mut bytes = [0; TIME_OFFSET + size_of::<SegmentTime>()];
        let count = self.open_to_read(first, None)?.read_header(&mut bytes)?;
        let noted = bytes[..count].get(TIME_OFFSET..).unwrap_or_default();
        Ok(SegmentTime::parse(noted, self.geometry.secret, first))
    }
}

/// Notes in the list of a framed log's files when the first record of each was appended, or a later
/// moment; nothing where nothing tells.
pub fn date(files: &Files, listed: &mut [SegmentFile], published: Lsn) -> Result<()> {
    let mut window = Window::of_one(Still::of(files));
    for file in listed {
        file.time = match files.geometry.has_envelope {
            true => {
                let index = file.first.get() / files.capacity();
                let time = first_time(files, &mut window, index, published)?;
                time.map(|nanos| nanos / SECOND_NANOS)
            }
            false => files.noted_time(file.first)?,
        };
    }
    Ok(())
}

fn timeless(files: &Files) -> Error {
    let message = "nothing in the log tells when its records were appended: a framed log tells it \
                   if it was created with envelopes, or removes records by their age; a text log \
                   by the names of its files, which earlier versions did not give them";
    Error::new(ErrorKind::Unsupported, message).at_path(&files.dir)
}
