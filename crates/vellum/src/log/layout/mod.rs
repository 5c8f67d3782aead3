//! The two layouts of a log: frames, and text. Here are the questions that an append asks of both;
//! the branch of each is all that a layout costs there.

pub(crate) mod framed;
pub(crate) mod text;

use crate::format::segment::header_len;
use crate::log::append::Appender;
use crate::log::layout::text::write_lock::Turn;
use crate::log::layout::text::{TextLog, TextWriter};
use crate::log::state::attachment::{Later, Space};
use crate::log::state::core::Core;
use crate::log::state::writer::Writer;
use crate::shared::tail_word::Grant;
use crate::{Layout, Lsn};

/// Up to which offset of its segment a record may end that starts at `start`, unless it starts the
/// segment; 0 where records go behind the segment.
#[inline]
pub(crate) fn limit_at(core: &Core, start: Lsn) -> u64 {
    match core.geometry.layout {
        Layout::Framed => core.capacity(),
        Layout::Text => TextLog::of(core).limit_at(start),
    }
}

/// Up to which offset the file that goes on at `start` will have records; `None` where it does not
/// end with them.
pub(crate) fn last_offset(core: &Core, start: Lsn) -> Option<u64> {
    let is_staged = core.commits.stage.is_some();
    (!is_staged).then(|| limit_at(core, start))
}

/// Bytes of the file that records go to now, when it is full.
pub(crate) fn file_len(core: &Core) -> u64 {
    match core.geometry.layout {
        Layout::Framed => header_len(Layout::Framed) + core.capacity(),
        Layout::Text => TextLog::of(core).newest_room(),
    }
}

/// How much to make ready in one go.
pub(crate) fn window(core: &Core) -> u64 {
    match core.geometry.layout {
        Layout::Framed => core.ready.prefault_bytes.min(core.capacity()),
        Layout::Text => TextLog::of(core).window(),
    }
}

/// Has records be in the file in their order, where others follow it while they are written; held
/// until dropped.
#[inline]
pub(crate) fn write_in_order(writer: Writer<'_>) -> Option<Turn<'_>> {
    TextWriter::of(writer).take_turn()
}

/// Leaves the file that is being written, if its time is over.
#[inline]
pub(crate) fn before_reserve(writer: Writer<'_>) {
    if writer.core.geometry.layout == Layout::Text {
        TextWriter::of(writer).look_at_clock();
    }
}

/// Does what has to be done before bytes are put where `turn` is held for.
#[inline]
pub(crate) fn before_put(writer: Writer<'_>, turn: Option<&Turn<'_>>, grant: Grant) {
    if turn.is_some() {
        TextWriter::of(writer).pad_before(grant);
    }
}

/// Notes what is to be prepared before it is needed, if the append that ends at `end` is the one to
/// notice.
#[inline]
pub(crate) fn look_ahead(
    writer: Writer<'_>,
    end: Lsn,
    len: u64,
    is_ready: bool,
    later: &mut Later,
) {
    match writer.core.geometry.layout {
        Layout::Framed => Appender::of(writer).look_ahead(end, len, is_ready, later),
        Layout::Text => TextWriter::of(writer).look_ahead(end, is_ready, later),
    }
}

/// Prepares what was noted.
pub(crate) fn prepare_ahead(writer: Writer<'_>, space: Space, later: &mut Later) {
    match writer.core.geometry.layout {
        Layout::Framed => Appender::of(writer).prepare_next(space, later),
        Layout::Text => TextWriter::of(writer).prepare_text(space, later),
    }
}
