//! Where records start: whether one does at a position, and a place from which to walk over frames
//! without walking over all of them.
//!
//! Frames have no pointers back, so a walk starts where a frame is known to start: behind a commit
//! record, which is known by its check, or at the start of a segment.

use crate::files::Files;
use crate::files::frames::{self, Scan};
use crate::files::view::View;
use crate::files::window::Window;
use crate::format::commit_record::{CommitRecord, RECORD_LEN};
use crate::format::frame::ALIGNMENT;
use crate::{ErrorKind, Lsn, Result};

/// How far back commit records are looked for first; then eight times as far, and so on.
const FIRST_STEP: u64 = 64 << 10;
/// Bytes looked through at a time.
const PIECE: u64 = 256 << 10;

/// A position before `end` at which a frame starts, or where the log begins. Everything before
/// `end` is published. Commit records are looked for where something is `durable`.
pub fn start_before(
    files: &Files,
    window: &mut Window,
    begin: Lsn,
    end: Lsn,
    durable: Lsn,
) -> Result<Lsn> {
    let mut first = files.segment_of(Lsn::new(end.get() - 1));
    // A place that cannot be read is no start; a walk over it gets the error.
    let from = first.max(begin);
    // Where nothing was committed there is no commit record.
    if durable > from
        && let Some(start) = readable(behind_record(files, window, from, end))?.flatten()
    {
        return Ok(start);
    }
    // A record that is longer than a segment starts in none of its segments but the first.
    while first > begin {
        let found = is_start(files, window, first, end);
        let before = match &found {
            Err(error) if files.is_told_missing(error) => files.before_missing(first),
            _ => Lsn::new(first.get() - files.capacity()),
        };
        if readable(found)? == Some(true) {
            break;
        }
        first = before;
    }
    Ok(first.max(begin))
}

/// The end of a commit record behind `first` and before `end`, not far from `end`.
fn behind_record(files: &Files, window: &mut Window, first: Lsn, end: Lsn) -> Result<Option<Lsn>> {
    let mut step = FIRST_STEP;
    while end.get().saturating_sub(first.get()) > step {
        let mut from = Lsn::new((end.get() - step).next_multiple_of(8));
        while let Some(start) = next_record_end(files, window, from, end)? {
            if is_start(files, window, start, end)? {
                return Ok(Some(start));
            }
            from = start;
        }
        step = step.saturating_mul(8);
    }
    Ok(None)
}

/// Where the first commit record from `from` on ends, before `end`.
fn next_record_end(files: &Files, window: &mut Window, from: Lsn, end: Lsn) -> Result<Option<Lsn>> {
    let mut at = from.get();
    while at + RECORD_LEN < end.get() {
        let bytes = window.fetch(Lsn::new(at), PIECE.min(end.get() - at), end)?;
        let found =
            (0..bytes.len().saturating_sub(RECORD_LEN as usize)).step_by(8).find(|offset| {
                let bytes = &bytes[*offset..];
                let has_length = u64::from(bytes[0]) == RECORD_LEN - 8 && bytes[1..4] == [0; 3];
                has_length
                    && CommitRecord::parse(files.codec, Lsn::new(at + *offset as u64), bytes)
                        .is_some()
            });
        if let Some(offset) = found {
            return Ok(Some(Lsn::new(at + offset as u64 + RECORD_LEN)));
        }
        if (bytes.len() as u64) < RECORD_LEN + 8 {
            return Ok(None);
        }
        // Pieces overlap, so that a commit record is whole in one of them.
        at += (bytes.len() as u64 - RECORD_LEN) / 8 * 8;
    }
    Ok(None)
}

fn readable<T>(found: Result<T>) -> Result<Option<T>> {
    match found {
        Err(error) if error.kind() == ErrorKind::Corrupt => Ok(None),
        found => found.map(Some),
    }
}

fn is_start(files: &Files, window: &mut Window, lsn: Lsn, end: Lsn) -> Result<bool> {
    Ok(lsn < end && matches!(frames::look(files, window, lsn, end)?, Scan::Frame { .. }))
}

/// Whether a record starts at `lsn`, or may later. Everything is published before `published`.
pub fn starts_record(
    view: &dyn View,
    window: &mut Window,
    lsn: Lsn,
    published: Lsn,
) -> Result<bool> {
    if lsn >= published {
        return Ok(true);
    }
    if !view.files().geometry.layout.has_frames() {
        return Ok(starts_line(view, window, lsn, published));
    }
    if !lsn.get().is_multiple_of(ALIGNMENT) {
        return Ok(false);
    }
    let found = frames::look(view.files(), window, lsn, published)?;
    Ok(matches!(found, Scan::Frame { .. }))
}

/// Whether a line starts at a published position, or the text of its segment has ended there or
/// before. A place that cannot be read is left to the reader that starts there.
fn starts_line(view: &dyn View, window: &mut Window, lsn: Lsn, published: Lsn) -> bool {
    let before = Lsn::new(lsn.get() - 1);
    // The byte before anything else: the length of the file takes a system call. A NUL is no part
    // of a line: the rest of the segment was skipped.
    let byte = window.fetch(before, 1, published).unwrap_or_default();
    if before < view.begin() || matches!(byte, b"\n" | b"\0" | b"") {
        return true;
    }
    let first = view.files().segment_of(before);
    let Ok(len) = window.segment_data_len(first) else { return true };
    let data_end = first.get() + len;
    let is_in_text =
        lsn.get() < data_end || lsn.get() == data_end && len == view.files().capacity();
    !is_in_text
}
