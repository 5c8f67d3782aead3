//! How far ahead a thread of the program makes a log ready for appends.

use crate::Lsn;
use crate::log::layout::text::TextLog;
use crate::log::state::core::Core;

/// The space that a thread of the program keeps ready, in windows of the longest.
const WINDOWS: u64 = 8;
/// The same for text, in windows as they are, and at least so much: other programs see the zeros.
const TEXT_WINDOWS: u64 = 4;
const TEXT_BYTES_MIN: u64 = 256 << 10;

/// Bytes that a thread of the program keeps ready ahead of the tail.
pub(crate) fn bytes_ahead(core: &Core) -> u64 {
    let window = &core.ready.window;
    let ahead = match core.files.geometry.layout.rotates() {
        false => WINDOWS * window.most(),
        true => (TEXT_WINDOWS * window.bytes()).max(TEXT_BYTES_MIN),
    };
    ahead.min(core.files.capacity() / 2)
}

/// Where the record ends with which an append asks such a thread next, behind one that ends at
/// `end`.
pub(crate) fn asks_next(core: &Core, end: Lsn) -> Lsn {
    Lsn::new(end.get() + bytes_ahead(core) / 8)
}

/// Up to where zeros may be written: as far as there are files that records go to.
pub(crate) fn zeros_limit(core: &Core) -> u64 {
    let allocated = core.words().allocated_end();
    match core.files.geometry.layout.rotates() {
        false => allocated,
        true => TextLog::of(core).newest_end().min(allocated),
    }
}
