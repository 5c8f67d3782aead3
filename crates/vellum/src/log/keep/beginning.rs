//! Moving the beginning of the log, and removing the files before it.
//!
//! **If the process dies here**: the next trim removes the files.

use zerocopy::IntoBytes;

use crate::error::OsResult;
use crate::format::segment::SegmentHeader;
use crate::log::append::{Append, Appender};
use crate::log::state::core::Core;
use crate::log::state::poison;
use crate::log::state::writer::{Prepare, Writer};
use crate::segment::listing::{Listing, SegmentFile, remove_all};
use crate::segment::open::WriteSegment;
use crate::shared::tail_word;
use crate::{Lsn, Result, sys};

/// Drops everything before `begin`, where a record starts; returns how many files went.
pub(crate) fn drop_before(writer: Writer<'_>, held: Prepare<'_>, begin: Lsn) -> Result<u64> {
    let (core, words) = (writer.core, writer.core.words());
    let noted = remember(core, begin)?;
    words.raise_begin(begin);
    core.check_region()?;
    drop(held);
    // Without the lock, which writers need: no process uses the files before the beginning.
    if let Some(segment) = noted
        && words.commits.named_end() != 0
    {
        // Before files go that a power cut would otherwise be missed for.
        let synced = sys::sync::sync_data_on(core.ready.filesystem, segment.fd());
        poison::heed_sync(core, synced.or_unsynced("sync the segment", &segment.path))?;
    }
    // A file that is open is not used again.
    writer.attachment.kept_files.close();
    let removed = remove_files(writer, begin);
    Appender::of(writer).forget_gone();
    words.full.made_space();
    Append::of(core).use_spares_ahead();
    removed
}

/// Removes the files before `begin`, or keeps some as spares; returns how many.
fn remove_files(writer: Writer<'_>, begin: Lsn) -> Result<u64> {
    let core = writer.core;
    let files = Listing::read(&core.files.dir)?.files;
    // The newest file always stays: its name shows where the log continues.
    let is_gone = |pair: &&[SegmentFile]| {
        core.files.segment_end(pair[0].first) <= begin && pair[1].first <= begin
    };
    let gone: Vec<&SegmentFile> = files.windows(2).filter(is_gone).map(|pair| &pair[0]).collect();
    if !gone.is_empty() {
        let _held = writer.lock_prepare()?;
        core.preparer().keep_spares(&gone, spares_max(core))?;
    }
    // Those that are kept have another name now.
    let (_, removed) = remove_all(&core.files.dir, gone.iter().copied());
    removed.map(|()| gone.len() as u64)
}

/// How many spares the program lets the log keep, beside the segments that are ready.
fn spares_max(core: &Core) -> u64 {
    let Some(most) = core.ready.spares_max else { return u64::MAX };
    let end = core.files.segment_end(tail_word::tail(core.words())).get();
    let ready = core.words().allocated_end().saturating_sub(end) / core.files.capacity();
    most.saturating_sub(ready)
}

/// Notes the new beginning in the segment that will be the oldest.
fn remember(core: &Core, begin: Lsn) -> Result<Option<WriteSegment>> {
    if core.files.geometry.layout.file_header_len() == 0 {
        return Ok(None);
    }
    let allocated_end = core.words().allocated_end();
    let is_there = core.files.segment_of(begin).get() < allocated_end;
    // At the very end of the last segment, that one stays, with nothing left in it.
    let first = if is_there { begin } else { Lsn::new(begin.get() - 1) };
    let first = core.files.segment_of(first);
    if first.get() >= allocated_end || begin.get() == core.files.capacity() {
        return Ok(None);
    }
    let segment = core.open_unmapped(first)?;
    let header =
        SegmentHeader::new(core.files.geometry.secret, first, core.files.capacity(), begin);
    segment.write(header.as_bytes(), 0)?;
    Ok(Some(segment))
}
