//! Where one may start to read.

use crate::files::frames::{self, Scan};
use crate::files::window::Window;
use crate::format::frame::ALIGNMENT;
use crate::log::read::reader::Reader;
use crate::log::repair::read_limit::ReadLimit;
use crate::log::state::core::Core;
use crate::shared::tail_word;
use crate::{Lsn, Result};

impl Reader {
    /// Whether one may start to read at `from`.
    pub(crate) fn starts_at(&mut self, from: Lsn) -> Result<bool> {
        if from < self.read_limit.end && self.read_limit.holes.is_empty() {
            return starts_record_before(&self.core, &mut self.window, from, self.read_limit.end);
        }
        let read_limit = ReadLimit::of(&self.core);
        self.core.check_region()?;
        match read_limit.hole_at(from) {
            Some(hole) => {
                Ok(!self.core.files.geometry.layout.has_frames() || hole.range.start == from)
            }
            None => starts_record_before(&self.core, &mut self.window, from, read_limit.end),
        }
    }
}

/// Whether a record starts at a published position, or may later.
///
/// A text log has no marks between its bytes, so any position in it will do. A reader there starts
/// at a line, though (`starts_line_before`).
pub(crate) fn starts_record(core: &Core, window: &mut Window, lsn: Lsn) -> Result<bool> {
    if !core.files.geometry.layout.has_frames() {
        return Ok(true);
    }
    starts_record_before(core, window, lsn, tail_word::published(core.words()))
}

/// The same, where everything is published before `published`.
fn starts_record_before(
    core: &Core,
    window: &mut Window,
    lsn: Lsn,
    published: Lsn,
) -> Result<bool> {
    if lsn >= published {
        return Ok(true);
    }
    if !core.files.geometry.layout.has_frames() {
        return Ok(starts_line(core, window, lsn, published));
    }
    if !lsn.get().is_multiple_of(ALIGNMENT) {
        return Ok(false);
    }
    let found = frames::look(&core.files, window, lsn, published)?;
    Ok(matches!(found, Scan::Frame { .. }))
}

/// Whether a line starts at a published position, or the text of its segment has ended there or
/// before. What cannot be read is left to the reader that starts there.
fn starts_line(core: &Core, window: &mut Window, lsn: Lsn, published: Lsn) -> bool {
    let before = Lsn::new(lsn.get() - 1);
    // The byte before anything else: the length of the file takes a system call. A NUL is no part
    // of a line: the rest of the segment was skipped.
    let byte = window.fetch(before, 1, published).unwrap_or_default();
    if before < core.begin() || matches!(byte, b"\n" | b"\0" | b"") {
        return true;
    }
    let first = core.files.segment_of(before);
    let Ok(len) = window.segment_data_len(first) else { return true };
    let data_end = first.get() + len;
    let is_in_text = lsn.get() < data_end || lsn.get() == data_end && len == core.files.capacity();
    !is_in_text
}
