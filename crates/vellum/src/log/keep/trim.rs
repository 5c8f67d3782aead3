//! Dropping the oldest part of a log.
//!
//! **If the process dies here**: `begin` is raised first and remembered in the header of its
//! segment, so that the next trim can continue the removal of the files before it, and a log
//! without its control file still begins where a record does.

use std::sync::Arc;

use crate::files::window::Window;
use crate::log::commit::{Commit, Leader};
use crate::log::keep::beginning;
use crate::log::keep::cursors::file::CursorFile;
use crate::log::read::reader::not_a_start;
use crate::log::read::reader::start::starts_record;
use crate::log::state::core::Core;
use crate::shared::tail_word;
use crate::{Error, ErrorKind, Lsn, Result};

/// What [`Log::trim`](crate::Log::trim) did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TrimReport {
    /// Oldest position that is kept.
    pub begin: Lsn,
    /// Segment files that were removed, or kept as spares.
    pub segments_removed: u64,
    /// Where a [cursor](crate::Cursor::hold) has kept records that were to be dropped.
    pub held_at: Option<Lsn>,
}

/// Drops everything before `before`.
pub(crate) fn trim(core: &Arc<Core>, before: Lsn) -> Result<TrimReport> {
    let writer = core.writer()?;
    let words = core.words();
    let published = tail_word::published(words);
    if before > published {
        let message = format!(
            "cannot trim to {before}: only what is published can be trimmed, up to {published}"
        );
        return Err(Error::new(ErrorKind::OutOfRange, message)
            .at_path(&core.files.dir)
            .at_lsn(before));
    }
    if core.commits.stage.is_some() {
        // Bytes on their way to a file must arrive before the file is removed.
        Commit::of(core).commit_to(before)?;
    }
    Leader::of(writer).carry_checkpoint(before)?;
    // Before the lock, which writers need.
    let holding = CursorFile::of(core).sync_holding_cursors()?;
    let held = writer.lock_prepare()?;
    core.check_words()?;
    let mut window = Window::new(Arc::clone(core));
    if before > words.begin() && !starts_record(core, &mut window, before)? {
        return Err(not_a_start(core, before));
    }
    let kept = CursorFile::of(core).held_from(holding)?;
    let held_at = (kept < before && core.begin() < before).then_some(kept);
    let before = match held_at {
        Some(kept) => record_start(core, &mut window, kept)?,
        None => before,
    };
    let begin = words.begin().max(before);
    Ok(TrimReport {
        begin,
        segments_removed: beginning::drop_before(writer, held, begin)?,
        held_at,
    })
}

/// The start of a record at `lsn`, or at the start of the segment before it where one starts there.
fn record_start(core: &Core, window: &mut Window, mut lsn: Lsn) -> Result<Lsn> {
    let begin = core.begin();
    while lsn > begin && !starts_record(core, window, lsn)? {
        lsn = core.files.segment_of(Lsn::new(lsn.get() - 1));
    }
    Ok(lsn.max(begin))
}
