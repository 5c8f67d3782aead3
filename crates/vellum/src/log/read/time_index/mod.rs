//! Where in a log the records of a time are, without reading all of it.
//!
//! | log | what tells a time | how it is searched |
//! |---|---|---|
//! | framed, with envelopes | the first record of each segment | bisected: one record read for each step |
//! | framed, without | the notes in segments (`framed::retain`) | one block read for each segment |
//! | text | the names of the files | the directory is listed |
//!
//! Nothing is stored for this: there is no index file that could be torn, stale or missing.
//!
//! **Clocks** are set, and appends overlap, so times are not in order. With envelopes, a time is
//! believed to be less than [`CLOCK_STEP`] behind any time before it. So the result never lacks a
//! record as long as no clock was set back by more. In other logs the time of a file or a segment
//! is taken as it is; the result is whole files, or whole segments.

use std::ops::Range;
use std::sync::Arc;

use crate::files::time_index;
use crate::log::layout::text::policy;
use crate::log::read::reader::Reader;
use crate::log::repair::read_limit::ReadLimit;
use crate::log::state::core::Core;
use crate::segment::listing::SegmentFile;
use crate::shared::tail_word;
use crate::{ErrorKind, Lsn, Result};

pub(crate) use time_index::nanos;

pub(crate) fn reader_at(core: &Arc<Core>, time: u64) -> Result<Reader> {
    let start = positions(core, Some(time), None)?.start;
    let mut reader = Reader::new(Arc::clone(core), start)?;
    if core.files.geometry.has_envelope {
        skip_before(&mut reader, time)?;
    }
    Ok(reader)
}

/// Moves a reader to the first record of `time` or later, or to damage, which it will meet again.
fn skip_before(reader: &mut Reader, time: u64) -> Result<()> {
    loop {
        let position = reader.position();
        let start = match reader.next() {
            Ok(None) => return Ok(()),
            Ok(Some(record)) if record.envelope.is_some_and(|has| has.nanos < time) => continue,
            Ok(Some(record)) => record.lsn,
            Err(error) if error.kind() == ErrorKind::Trimmed => return Err(error),
            Err(_) => position,
        };
        reader.go_to(start);
        return Ok(());
    }
}

pub(crate) fn positions(
    core: &Arc<Core>,
    since: Option<u64>,
    until: Option<u64>,
) -> Result<Range<Lsn>> {
    let (begin, end) = (core.begin(), ReadLimit::of(core).end);
    core.check_region()?;
    time_index::positions(core, begin..end, tail_word::published(core.words()), since, until)
}

/// Notes in the list of a framed log's files when the first record of each was appended, or a later
/// moment; nothing where nothing tells.
pub(crate) fn date(core: &Core, files: &mut [SegmentFile]) -> Result<()> {
    time_index::date(&core.files, files, tail_word::published(core.words()))
}

/// Whether it is known how old files are.
pub(crate) fn knows_ages(core: &Core) -> bool {
    let notes_times = || policy::of(core).retain_age.is_some();
    core.files.geometry.layout.names_have_times()
        || core.files.geometry.has_envelope
        || notes_times()
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
