//! Dropping the oldest part of a log.
//!
//! **If the process dies here**: `begin` is raised first and remembered in the header of the
//! segment it lies in, so that the removal of the files before it can be taken up by the next trim,
//! and a log without its control file still begins where a record does.

use std::sync::Arc;

use zerocopy::IntoBytes;

use crate::error::OsResult;
use crate::format::segment::SegmentHeader;
use crate::log::append::{Append, Appender};
use crate::log::commit::Commit;
use crate::log::keep::cursors::file::CursorFile;
use crate::log::read::reader::not_a_start;
use crate::log::read::reader::start::starts_record;
use crate::log::read::window::Window;
use crate::log::state::core::Core;
use crate::log::state::prepare_lock::Prepare;
use crate::log::state::writer::Writer;
use crate::segment::file::Segment;
use crate::segment::listing::{Listing, SegmentFile, remove_all};
use crate::shared::tail_word;
use crate::{Error, ErrorKind, Layout, Lsn, Result, sys};

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

/// Drops what lies before `before`.
pub(crate) fn trim(core: &Arc<Core>, before: Lsn) -> Result<TrimReport> {
    let writer = core.writer()?;
    let words = core.words();
    let published = tail_word::published(words);
    if before > published {
        let message = format!(
            "cannot trim to {before}: only what is published can be trimmed, up to {published}"
        );
        return Err(Error::new(ErrorKind::OutOfRange, message).at_path(&core.dir).at_lsn(before));
    }
    if core.commits.stage.is_some() {
        // What is on its way to a file must arrive before the file goes.
        Commit::of(core).commit_to(before)?;
    }
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
    Ok(TrimReport { begin, segments_removed: drop_before(writer, held, begin)?, held_at })
}

/// Drops what lies before `begin`, where a record starts; returns how many files went.
pub(crate) fn drop_before(writer: Writer<'_>, held: Prepare<'_>, begin: Lsn) -> Result<u64> {
    let (core, words) = (writer.core, writer.core.words());
    let noted = remember(core, begin)?;
    words.raise_begin(begin);
    core.check_region()?;
    drop(held);
    // Without the lock, which writers need: nobody uses what lies before the beginning.
    if let Some(segment) = noted
        && words.commits.named_end() != 0
    {
        // Before files go that a power cut would otherwise be missed for.
        let synced = sys::file::sync_data(segment.fd());
        core.heed_sync(synced.or_unsynced("sync the segment", &segment.path))?;
    }
    let removed = remove_files(writer, begin);
    Appender::of(writer).forget_gone();
    words.full.made_space();
    Append::of(core).use_spares_ahead();
    removed
}

/// The start of a record at `lsn`, or at the start of the segment before it where one starts there.
fn record_start(core: &Core, window: &mut Window, mut lsn: Lsn) -> Result<Lsn> {
    let begin = core.begin();
    while lsn > begin && !starts_record(core, window, lsn)? {
        lsn = core.segment_of(Lsn::new(lsn.get() - 1));
    }
    Ok(lsn.max(begin))
}

/// Removes the files before `begin`, or keeps some as spares; returns how many.
fn remove_files(writer: Writer<'_>, begin: Lsn) -> Result<u64> {
    let core = writer.core;
    let files = Listing::read(&core.dir)?.files;
    // The newest file stays, whatever it holds: its name tells where the log goes on.
    let is_gone =
        |pair: &&[SegmentFile]| core.segment_end(pair[0].first) <= begin && pair[1].first <= begin;
    let gone: Vec<&SegmentFile> = files.windows(2).filter(is_gone).map(|pair| &pair[0]).collect();
    if !gone.is_empty() {
        let _held = writer.lock_prepare()?;
        core.preparer().keep_spares(&gone)?;
    }
    // Those that are kept have another name now.
    let (_, removed) = remove_all(&core.dir, gone.iter().copied());
    removed.map(|()| gone.len() as u64)
}

/// Notes the new beginning in the segment that will be the oldest.
fn remember(core: &Core, begin: Lsn) -> Result<Option<Segment>> {
    if core.geometry.layout != Layout::Framed {
        return Ok(None);
    }
    let allocated_end = core.words().allocated_end();
    let is_there = core.segment_of(begin).get() < allocated_end;
    // At the very end of the last segment, that one stays, with nothing left in it.
    let first = if is_there { begin } else { Lsn::new(begin.get() - 1) };
    let first = core.segment_of(first);
    if first.get() >= allocated_end || begin.get() == core.capacity() {
        return Ok(None);
    }
    let segment = core.open_unmapped(first)?;
    let header = SegmentHeader::new(core.geometry.secret, first, core.capacity(), begin);
    segment.write(header.as_bytes(), 0)?;
    Ok(Some(segment))
}
