//! What a thread of the program does for those who append: it gets on with the next segment, and
//! commits before the stage is full.

use crate::log::commit::Commit;
use crate::log::keep::retention;
use crate::log::layout::framed::FrameWriter;
use crate::shared::tail_word;
use crate::{Lsn, Result};

impl Commit<'_> {
    /// Does what appends have asked for; returns what became durable, if that was asked for.
    pub(crate) fn help(self) -> Result<Option<Lsn>> {
        let (writer, words) = (self.core.writer()?, self.core.words());
        if !writer.attachment.helpers.is_asked() {
            return Ok(None);
        }
        let seen = tail_word::tail(words).get();
        // The append that needs the space is told of a full disk.
        if FrameWriter::of(writer).make_next_segment().is_ok_and(|is_new| is_new) {
            retention::tidy(writer);
        }
        let durable = self.commit_half_stage();
        let grown = tail_word::tail(words).get().saturating_sub(seen);
        if grown >= self.core.ready.prefault_bytes {
            // Appends in between may have found the lock held, and asked for nothing.
            writer.attachment.helpers.ask();
        }
        durable
    }

    /// Commits, if half a segment of a staged log is in no group: the other half is for those who
    /// append meanwhile.
    pub(crate) fn commit_half_stage(self) -> Result<Option<Lsn>> {
        let words = self.core.words();
        let waiting = tail_word::tail(words).get().saturating_sub(words.commits.grouped().get());
        if self.core.commits.stage.is_none() || waiting < self.core.capacity() / 2 {
            return Ok(None);
        }
        self.commit_all().map(Some)
    }
}
