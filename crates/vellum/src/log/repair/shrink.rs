//! Leaving a log small: the last participant cuts off what was made ready. A text log is a plain
//! file then.
//!
//! **If the process dies here**: `ready_end` is lowered before the file is cut, so the next opener
//! makes the space ready again.

use crate::error::OsResult;
use crate::format::control::Geometry;
use crate::log::layout::text::TextSpace;
use crate::log::ready::space;
use crate::log::repair::pad;
use crate::log::state::core::Core;
use crate::log::state::writer::{Prepare, Writer};
use crate::options::limits::CAPACITY_UNIT_BYTES;
use crate::segment::list;
use crate::shared::tail_word;
use crate::{Lsn, Result, knowledge, sys};

/// Cuts the active segment of a text log to its data and removes the prepared one; gives blocks of
/// a framed one back that it got ahead, and removes the next one if it was begun.
///
/// The caller is the only participant, and holds the gate.
pub(crate) fn to_data(writer: Writer<'_>) -> Result<()> {
    let core = writer.core;
    pad::repair(writer)?;
    let words = core.words();
    let tail = tail_word::tail(words);
    if core.commits.stage.is_some() {
        core.preparer().unmake()?;
    }
    if !space::goes_in_steps(core) || tail_word::published(words) != tail {
        return Ok(());
    }
    core.check_words()?;
    let active = core.files.segment_of(tail);
    if !core.files.geometry.layout.ends_with_records() {
        return free_behind(core, active, tail);
    }
    let prepare = Prepare::without_lock(writer);
    words.take_back_ready(tail);
    if words.allocated_end() > active.get() {
        let segment = core.open_unmapped(active)?;
        let len = segment.offset_of(tail);
        sys::file::set_len(segment.fd(), len).or_os("end the segment", &segment.path)?;
    }
    let beyond: Vec<Lsn> =
        list(&core.files.dir)?.into_iter().filter(|first| *first > active).collect();
    if !beyond.is_empty() {
        words.set_allocated_end(active.get() + core.files.capacity());
        for first in beyond {
            core.preparer().remove(first)?;
        }
        words.files.names.forget();
        TextSpace::of(&prepare).point_to_newest();
    }
    TextSpace::of(&prepare).unmake_next()
}

/// Gives the blocks behind `tail` back, unless the segment has all of its own: those were prepared
/// on purpose. A file that grows is cut there.
fn free_behind(core: &Core, active: Lsn, tail: Lsn) -> Result<()> {
    let words = core.words();
    if words.allocated_end() <= active.get() {
        return Ok(());
    }
    let segment = core.open_unmapped(active)?;
    let file_len = sys::file::len(segment.fd()).or_os("look at", &segment.path)?;
    let taken = sys::file::allocated_len(segment.fd()).or_os("look at", &segment.path)?;
    let begin = segment.offset_of(tail).next_multiple_of(CAPACITY_UNIT_BYTES);
    if taken >= segment.offset_of(core.files.segment_end(tail)) {
        return Ok(());
    }
    words.take_back_ready(tail);
    let Geometry { layout, preallocate, fill, .. } = core.files.geometry;
    if knowledge::grows_when_ready(layout, preallocate, fill) {
        // Also where it ends there already: that gives back what it has behind its end.
        let len = begin.min(file_len);
        return sys::file::set_len(segment.fd(), len).or_os("end the segment", &segment.path);
    }
    sys::file::free_range(segment.fd(), begin, file_len.saturating_sub(begin));
    Ok(())
}
