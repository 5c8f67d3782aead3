//! How long closed files are, and when the last record was put into them.

use crate::Result;
use crate::error::OsResult;
use crate::log::state::core::Core;
use crate::segment::listing::SegmentFile;
use crate::shared::tail_word;
use crate::sys::clock;

/// When the last record of each file was written, at the latest. A time in the future, or before
/// the clock was set, is not believed; and no file is younger than one behind it.
pub(crate) fn ends_of(core: &Core, files: &[SegmentFile], now: u64) -> Vec<u64> {
    let is_right = |time: &u64| clock::may_be_right(*time, now);
    // A framed segment is made, and perhaps was used, long before its last record.
    let grows = core.files.geometry.layout.ends_with_records();
    let changed = |file: &SegmentFile| file.changed_at(&core.files.dir).filter(is_right);
    let mut ends = vec![now; files.len()];
    let mut latest = now;
    for (index, file) in files.iter().enumerate().rev() {
        // The first record of the next file came after the last of this one.
        let followed = files.get(index + 1).and_then(|next| next.time).filter(is_right);
        latest = latest.min(followed.or_else(|| changed(file).filter(|_| grows)).unwrap_or(now));
        ends[index] = latest;
    }
    ends
}

/// Lengths of files; of the one that is written, that of its text.
pub(crate) fn lens_of(core: &Core, files: &[SegmentFile]) -> Result<Vec<u64>> {
    let tail = tail_word::tail(core.words());
    let len = |file: &SegmentFile| {
        if core.files.segment_of(tail) == file.first {
            return Ok(tail.get() - file.first.get());
        }
        Ok(core.files.dir.stat(&file.path).or_os("look at", &file.path)?.st_size as u64)
    };
    files.iter().map(len).collect()
}
