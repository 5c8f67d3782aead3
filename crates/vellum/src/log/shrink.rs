//! Leaving a text log as a plain file: the last participant cuts off what was made ready.
//!
//! **If the process dies here**: `ready_end` is lowered before the file is cut, so the next opener
//! makes the space ready again.

use crate::error::OsResult;
use crate::log::attachment::Attachment;
use crate::log::core::Core;
use crate::log::pad;
use crate::segment::list;
use crate::shared::cursor;
use crate::shared::primitive::Ordering;
use crate::{Layout, Lsn, Result, sys};

/// Cuts the active segment of a text log to its data and removes the prepared one.
///
/// The caller is the only participant, and holds the gate.
pub(crate) fn to_data(core: &Core, attachment: &Attachment) -> Result<()> {
    pad::repair(core, attachment)?;
    let words = core.words();
    let tail = cursor::tail(words);
    if core.geometry.layout != Layout::Text || cursor::published(words) != tail {
        return Ok(());
    }
    core.check_words()?;
    let active = core.segment_of(tail);
    words.ready_end.store(tail.get(), Ordering::SeqCst);
    if words.allocated_end.load(Ordering::SeqCst) > active.get() {
        let segment = core.open_unmapped(active)?;
        let len = segment.offset_of(tail);
        sys::file::set_len(segment.fd(), len).or_os("end the segment", &segment.path)?;
    }
    let beyond: Vec<Lsn> = list(&core.dir)?.into_iter().filter(|first| *first > active).collect();
    if !beyond.is_empty() {
        words.allocated_end.store(active.get() + core.capacity(), Ordering::SeqCst);
        for first in beyond {
            core.preparer().remove(first)?;
        }
        words.files.names.forget();
        core.point_to_newest();
    }
    core.unmake_next()
}
