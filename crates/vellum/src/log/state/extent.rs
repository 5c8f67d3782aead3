//! How many bytes of log are between two positions. The files of a text log that rotates have gaps
//! between them, so that is not the difference.

use crate::log::state::core::Core;
use crate::segment::listing::{Listing, SegmentFile};
use crate::shared::tail_word;
use crate::{Lsn, Result};

/// Bytes from `from` to `to`; of a text log, bytes of text.
pub(crate) fn bytes_between(core: &Core, from: Lsn, to: Lsn) -> Result<u64> {
    if from >= to || core.files.geometry.layout.has_every_segment() {
        return Ok(to.get().saturating_sub(from.get()));
    }
    let files = Listing::read(&core.files.dir)?.files;
    let newest = core.files.segment_of(tail_word::published(core.words()));
    let between = |file: &SegmentFile| {
        let end = match file.first < newest {
            true => file.first.get() + file.text_len(&core.files.dir).unwrap_or(0),
            false => u64::MAX,
        };
        end.min(to.get()).saturating_sub(file.first.max(from).get())
    };
    Ok(files[Listing::count_before(&files, from)..].iter().map(between).sum())
}
