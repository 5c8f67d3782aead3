//! Damaged ranges: their error, or the end to which a reader skips.

use crate::files::frames;
use crate::files::gap;
use crate::log::read::reader::{Reader, trimmed, truncated};
use crate::shared::tail_word;
use crate::{Error, ErrorKind, Result};

impl Reader {
    /// Continues behind unreadable ranges, if the caller wants that; else the error.
    pub(super) fn pass_damage(&mut self, error: Error) -> Result<()> {
        if self.take_up_words() {
            // The recovery of the log has moved what is staged.
            return Ok(());
        }
        let error = self.unless_trimmed(error);
        if !self.skips_damage || error.kind() != ErrorKind::Corrupt {
            return Err(error);
        }
        let (from, end) = (self.position, self.read_limit.end);
        let (core, reason) = (&self.core, error.to_string());
        let view = &**core;
        let gap = if core.files.geometry.layout.has_frames() {
            let next = frames::find_next(core, from, end)?.unwrap_or(end);
            gap::gap_between(view, from, next, reason)
        } else {
            gap::gap_at(view, from, end, reason)
        };
        self.position = gap.to;
        self.gaps.push(gap);
        self.window.forget();
        Ok(())
    }

    pub(super) fn damage(&self, reason: &'static str) -> Error {
        let core = &self.core;
        let first = core.files.segment_of(self.position);
        let path = core.segment_path(first);
        let offset = crate::format::segment::HEADER_LEN + self.position.get() - first.get();
        let message = format!("{reason}: position {}, byte {offset} of the file", self.position);
        Error::new(ErrorKind::Corrupt, message).at_path(&path).at_lsn(self.position)
    }

    /// The error, unless the explanation is that the position has been trimmed or cut away.
    fn unless_trimmed(&self, error: Error) -> Error {
        let words = self.core.words();
        let begin = words.begin();
        let tail = tail_word::tail(words);
        if self.position < begin {
            trimmed(&self.core, self.position, begin)
        } else if tail < self.read_limit.end {
            truncated(&self.core, self.position, tail)
        } else {
            error
        }
    }
}
