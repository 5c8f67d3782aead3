//! How far records go in a segment: the questions to both layouts that the shared words answer.

use crate::error::OsResult;
use crate::log::layout::text::TextLog;
use crate::log::state::core::Core;
use crate::{Layout, Lsn, Result, sys};

/// Longest record that is appended by `append::usual`. Longer ones want more space ahead.
pub(crate) const SHORT_LEN_MAX: u64 = 4096;

/// Up to which offset of its segment a record may end that starts at `start`, unless it starts the
/// segment; 0 where records go behind the segment.
#[inline]
pub(crate) fn limit_at(core: &Core, start: Lsn) -> u64 {
    match core.files.geometry.layout {
        Layout::Framed => core.files.capacity(),
        _ => TextLog::of(core).limit_at(start),
    }
}

/// Bytes of the file that records go to now, when it is full.
pub(crate) fn file_len(core: &Core) -> u64 {
    match core.files.geometry.layout {
        Layout::Framed => core.files.geometry.layout.file_header_len() + core.files.capacity(),
        _ => TextLog::of(core).newest_room(),
    }
}

/// Refuses an append, before anything is reserved, if this process may not write to a whole
/// segment, or to a whole text file by the policy.
pub(crate) fn check_size_limit(core: &Core) -> Result<()> {
    let len = file_len(core);
    sys::file::check_size_limit(len).or_os("write to a segment of the log", &core.files.dir)
}

/// Bytes that a reservation of `len` takes at `start`, with the skipped bytes before it.
pub(crate) fn len_at(core: &Core, start: Lsn, len: u64) -> u64 {
    let capacity = core.files.capacity();
    len_from(start.get() % capacity, len, capacity, limit_at(core, start))
}

/// Bytes that `len` bytes take from `offset` in a segment on, with the skipped bytes before them:
/// no record ends behind `limit` but one that starts the segment.
#[inline]
fn len_from(offset: u64, len: u64, capacity: u64, limit: u64) -> u64 {
    if offset == 0 || offset + len <= limit { len } else { capacity - offset + len }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_starts_at_the_next_segment() {
        let from = |offset, len| len_from(offset, len, 4096, 4096);
        assert_eq!(from(0, 4096), 4096);
        assert_eq!(from(96, 4000), 4000);
        assert_eq!(from(97, 4000), 3999 + 4000);
        assert_eq!(from(0, 10_000), 10_000, "longer than a segment, from its start");
        assert_eq!(from(1, 10_000), 4095 + 10_000);
        let from = |offset, len| len_from(offset, len, 4096, 1000);
        assert_eq!(from(900, 100), 100);
        assert_eq!(from(901, 100), 3195 + 100, "files are shorter than segments");
        assert_eq!(from(0, 2000), 2000, "but for a record that is longer itself");
        assert_eq!(len_from(1, 1, 4096, 0), 4095 + 1, "the segment was left");
        assert_eq!(len_from(0, 1, 4096, 0), 1, "there is nothing to leave");
    }
}
