//! Where one may start to read.

use crate::files::starts;
use crate::files::window::Window;
use crate::log::read::reader::Reader;
use crate::log::repair::read_limit::ReadLimit;
use crate::log::state::core::Core;
use crate::shared::tail_word;
use crate::{Lsn, Result};

impl Reader {
    /// Whether one may start to read at `from`.
    pub(crate) fn starts_at(&mut self, from: Lsn) -> Result<bool> {
        if from < self.read_limit.end && self.read_limit.holes.is_empty() {
            return starts::starts_record(&*self.core, &mut self.window, from, self.read_limit.end);
        }
        let read_limit = ReadLimit::of(&self.core);
        self.core.check_region()?;
        match read_limit.hole_at(from) {
            Some(hole) => {
                Ok(!self.core.files.geometry.layout.has_frames() || hole.range.start == from)
            }
            None => starts::starts_record(&*self.core, &mut self.window, from, read_limit.end),
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
    starts::starts_record(core, window, lsn, tail_word::published(core.words()))
}
