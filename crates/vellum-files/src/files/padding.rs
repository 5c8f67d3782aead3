//! Filling a range that was reserved and will never be written, in the files.
//!
//! A framed log gets a pad frame for each segment touched; a text log gets a visible marker line,
//! and the space skipped at the end of a segment is cut off its file, exactly as the writer would
//! have done. Padding twice gives the same bytes.

use std::borrow::Borrow;
use std::sync::Arc;

use crate::error::OsResult;
use crate::files::Files;
use crate::files::open_files::open_to_read;
use crate::files::view::View;
use crate::format::text;
use crate::lsn::Range;
use crate::segment::open::WriteSegment;
use crate::{ErrorKind, Lsn, Result, sys};

/// Markers are written this much at a time: whole lines of them.
const MARKER_LEN_MAX: u64 = 16 * text::LINE_LEN_MAX as u64;

/// Why space was reserved and not used.
#[derive(Clone, Copy, Debug)]
pub enum Reason {
    /// Its writer died.
    Died,
    /// It could not be written.
    Failed,
    /// Its writer abandoned it.
    Abandoned,
    /// The marker before has told it, and the size.
    Told,
}

impl Reason {
    fn words(self) -> &'static str {
        match self {
            Reason::Died => "their writer died",
            Reason::Failed => "they could not be written",
            Reason::Abandoned => "their writer abandoned them",
            Reason::Told => "",
        }
    }
}

/// Fills a range in the segments that `open` gives.
pub fn write_to<S: Borrow<WriteSegment>>(
    files: &Files,
    range: Range,
    reason: Reason,
    open: impl Fn(Lsn) -> Result<Arc<S>>,
) -> Result<()> {
    let (end, skips) = (range.end(), is_skipped(files, range));
    let (mut lsn, mut is_reported) = (range.start, matches!(reason, Reason::Told));
    while lsn < end {
        let opened = open(files.segment_of(lsn))?;
        let segment: &WriteSegment = (*opened).borrow();
        let segment_end = files.segment_end(lsn);
        let limit = end.min(segment_end);
        if files.geometry.layout.has_frames() {
            write_pad_frame(files, segment, lsn, limit)?;
        } else if skips && lsn == range.start {
            cut_off(segment, lsn)?;
        } else {
            let lost = (!is_reported).then_some(end.get() - lsn.get());
            write_marker(
                segment,
                Range { start: lsn, len: limit.get() - lsn.get() },
                lost,
                reason,
            )?;
            is_reported = true;
        }
        lsn = limit;
    }
    Ok(())
}

/// One pad frame from `lsn` to `limit`, in one segment.
fn write_pad_frame(files: &Files, segment: &WriteSegment, lsn: Lsn, limit: Lsn) -> Result<()> {
    let header = files.codec.pad(lsn, limit.get() - lsn.get());
    segment.write(&header.to_bytes(), segment.offset_of(lsn))
}

/// Ends a text segment at `lsn`: everything behind is skipped.
pub fn cut_off(segment: &WriteSegment, lsn: Lsn) -> Result<()> {
    sys::file::set_len(segment.fd(), segment.offset_of(lsn)).or_os("end the segment", &segment.path)
}

/// A marker over `range`, in one segment, that reports `lost` bytes.
fn write_marker(
    segment: &WriteSegment,
    range: Range,
    mut lost: Option<u64>,
    reason: Reason,
) -> Result<()> {
    let mut lsn = range.start;
    while lsn < range.end() {
        let len = (range.end().get() - lsn.get()).min(MARKER_LEN_MAX);
        let marker = text::marker(lost.take(), len as usize, reason.words());
        segment.write(&marker, segment.offset_of(lsn))?;
        lsn = Lsn::new(lsn.get() + len);
    }
    Ok(())
}

/// Whether there is a whole line of text in `range`, behind the space that it skips.
pub fn is_whole_line(view: &dyn View, range: Range) -> Result<bool> {
    let start = if is_skipped(view.files(), range) {
        view.files().segment_end(range.start)
    } else {
        range.start
    };
    let mut bytes = vec![0; range.len.min(MARKER_LEN_MAX) as usize];
    let (mut lsn, mut ends_line) = (start, false);
    while lsn < range.end() {
        let limit = range.end().min(view.files().segment_end(lsn));
        let wanted = bytes.len().min((limit.get() - lsn.get()) as usize);
        let found = &mut bytes[..wanted];
        let is_there = read(view, lsn, found)? == wanted && !found.contains(&0);
        if !is_there || (lsn == start && text::may_start_marker(found)) {
            return Ok(false);
        }
        ends_line = found.ends_with(b"\n");
        lsn = Lsn::new(lsn.get() + wanted as u64);
    }
    Ok(ends_line)
}

/// Reads the bytes at `lsn`: none where there is no file.
fn read(view: &dyn View, lsn: Lsn, bytes: &mut [u8]) -> Result<usize> {
    match open_to_read(view, view.files().segment_of(lsn)) {
        Ok(segment) => segment.read(lsn, bytes),
        Err(error) if error.kind() == ErrorKind::Corrupt => Ok(0),
        Err(error) => Err(error),
    }
}

/// Whether `range` begins with the end of a segment that is skipped: nothing else starts inside a
/// segment and continues in the next.
pub fn is_skipped(files: &Files, range: Range) -> bool {
    range.start > files.segment_of(range.start) && range.end() > files.segment_end(range.start)
}
