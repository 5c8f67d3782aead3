//! The two layouts of a log: frames, and text. Here are the questions that an append asks of both;
//! the branch of each is all that a layout costs there.

pub(crate) mod closed_files;
pub(crate) mod framed;
pub(crate) mod helped;
pub(crate) mod limits;
pub(crate) mod text;

use crate::log::layout::framed::FrameWriter;
use crate::log::layout::text::write_lock::TextWriteLock;
use crate::log::layout::text::{TextSpace, TextWriter};
use crate::log::ready::RoomMaker;
use crate::log::state::attachment::{AfterPublish, Space};
use crate::log::state::writer::{Prepare, Writer};
use crate::shared::tail_word::Grant;
use crate::{Layout, Lsn, Result};

/// Has records be in the file in their order, where others follow it while they are written; held
/// until dropped.
#[inline]
pub(crate) fn write_in_order(writer: Writer<'_>) -> Option<TextWriteLock<'_>> {
    if !writer.core.files.writes_text() {
        return None;
    }
    TextWriter::of(writer).lock_for_text()
}

/// Leaves the file that is being written, if its time is over.
#[inline]
pub(crate) fn before_reserve(writer: Writer<'_>) {
    if writer.core.files.geometry.layout.rotates() {
        TextWriter::of(writer).look_at_clock();
    }
}

/// Does what has to be done before bytes are put where `lock` is held for.
#[inline]
pub(crate) fn before_put(writer: Writer<'_>, lock: Option<&TextWriteLock<'_>>, grant: Grant) {
    if lock.is_some() {
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
    after: &mut AfterPublish,
) {
    let is_held = || writer.core.words().prepare.is_held();
    if end > prepared_limit(writer, len, is_ready) && !is_held() {
        after.space = Some(Space { end, len, is_ready });
    }
}

/// Up to where records of `len` bytes end that have nothing prepared.
#[inline]
pub(crate) fn prepared_limit(writer: Writer<'_>, len: u64, is_ready: bool) -> Lsn {
    let prepared_limit = match writer.core.files.geometry.layout {
        Layout::Framed => FrameWriter::of(writer).prepared_limit(len, is_ready),
        _ => TextWriter::of(writer).prepared_limit(is_ready),
    };
    Lsn::new(prepared_limit).min(writer.attachment.helpers.asked_until())
}

/// Prepares what was noted.
pub(crate) fn prepare_ahead(writer: Writer<'_>, space: Space, after: &mut AfterPublish) {
    match writer.core.files.geometry.layout {
        Layout::Framed => FrameWriter::of(writer).prepare_next(space, after),
        _ => TextWriter::of(writer).prepare_text(space, after),
    }
}

/// Creates segments until `end` is allocated, for a record of `len` bytes that ends there; all or
/// none. Returns whether there is a new file.
pub(crate) fn allocate_to(prepare: &Prepare<'_>, end: Lsn, len: u64) -> Result<bool> {
    let core = prepare.writer.core;
    let allocated = core.words().allocated_end();
    match core.files.geometry.layout {
        Layout::Framed => RoomMaker::of(prepare).create_to(allocated, end),
        _ if allocated >= end.get() => Ok(false),
        _ => TextSpace::of(prepare).allocate_text(allocated, end, len).map(|()| true),
    }
}
