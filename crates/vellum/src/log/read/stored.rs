//! Positions that are stored outside of the log: giving them out, and readers that start there,
//! which make sure that a position is the record it was taken for.

use std::sync::Arc;

use crate::files::frames::{self, Scan};
use crate::files::window::Window;
use crate::format::frame::Kind;
use crate::format::identity::Meaning;
use crate::log::read::reader::{Reader, not_a_start, truncated};
use crate::log::repair::read_limit::ReadLimit;
use crate::log::state::core::Core;
use crate::log::state::identity;
use crate::{Lsn, Position, Result};

impl Reader {
    /// A reader at a stored position.
    pub(crate) fn at(core: Arc<Core>, position: Position, meaning: Meaning) -> Result<Reader> {
        let (lsn, epoch) = identity::resolve(&core, position, meaning)?;
        let mut reader = Reader::new(core, lsn)?;
        // A later rewind is noticed as by any reader.
        reader.epoch = epoch;
        reader.check_epoch()?;
        if reader.has_lost(meaning)? {
            return Err(not_a_start(&reader.core, lsn));
        }
        Ok(reader)
    }

    /// Whether no record of the user is at the position: there is a pad or a commit record, or
    /// the text of a closed segment has ended before.
    fn has_lost(&mut self, meaning: Meaning) -> Result<bool> {
        let (core, lsn, end) = (&self.core, self.position, ReadLimit::of(&self.core).end);
        core.check_region()?;
        if core.files.geometry.layout.has_frames() {
            let is_record = meaning == Meaning::Record && lsn < end;
            return Ok(is_record && !starts_payload(core, &mut self.window, lsn, end)?);
        }
        if core.files.segment_end(lsn) > end {
            return Ok(false);
        }
        let first = self.core.files.segment_of(lsn);
        let end = Lsn::new(first.get() + self.window.segment_data_len(first)?);
        Ok(lsn > end || lsn == end && meaning == Meaning::Record)
    }

    /// The position `lsn`, which this reader has come to or passed, in a form to be stored.
    ///
    /// In the [epoch](crate::Log::epoch) in which this reader last looked at the log. So it is
    /// right while others truncate: the record that it was taken for is resolved or refused. Costs
    /// a read of memory.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](crate::ErrorKind::Unsupported) in a log without an [id](crate::Log::id).
    pub fn position_of(&self, lsn: Lsn) -> Result<Position> {
        identity::position(&self.core, self.epoch, lsn)
    }

    /// Notices that the log was truncated since it was last looked at, although it may have grown
    /// beyond the position again.
    pub(crate) fn check_epoch(&mut self) -> Result<()> {
        let core = &self.core;
        core.check_region()?;
        if identity::live_epoch(core) == self.epoch {
            return Ok(());
        }
        let (id, lsn) = (core.opened.identity.as_ref().map(|identity| identity.id), self.position);
        let Some((log, now)) = id.zip(identity::current(core)) else { return Ok(()) };
        let position = Position { log, epoch: self.epoch, lsn };
        if let Err(error) = now.resolve(position, Meaning::Next) {
            return Err(truncated(core, lsn, error.lsn().unwrap_or(lsn)));
        }
        self.epoch = now.epoch;
        Ok(())
    }
}

/// Whether a frame starts at `lsn` in which the caller's bytes are.
fn starts_payload(core: &Core, window: &mut Window, lsn: Lsn, limit: Lsn) -> Result<bool> {
    let found = frames::look(&core.files, window, lsn, limit)?;
    let is_skipped = matches!(found, Scan::Frame { kind: Kind::Pad | Kind::CommitRecord, .. });
    Ok(!is_skipped)
}
