//! The state of a log's cursors, as others see it.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::files::gap;
use crate::format::cursor::Entry;
use crate::log::keep::cursors::cursor::CursorHold;
use crate::log::keep::cursors::file::CursorFile;
use crate::log::keep::cursors::owner;
use crate::log::read::reader::Reader;
use crate::log::state::core::Core;
use crate::log::state::extent;
use crate::segment::listing::Listing;
use crate::shared::tail_word;
use crate::sys::clock;
use crate::{Lsn, Result};

/// The state of a cursor, as [`Log::cursors`](crate::Log::cursors) tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CursorStat {
    /// Its name.
    pub name: String,
    /// Where it is: the first record that its reader has not finished.
    pub lsn: Lsn,
    /// The records that it keeps from being removed; `None` if it holds nothing.
    pub hold: Option<CursorHold>,
    /// When it was committed or set last.
    pub committed_at: SystemTime,
    /// Bytes from the cursor to the published end, or zero if no record is there; of a text log,
    /// bytes of text.
    pub lag_bytes: u64,
    /// Records from the cursor to the published end, if they take no more than 1 MiB.
    pub lag_records: Option<u64>,
    /// How old the oldest record is that its reader has not finished, at most; zero when there is
    /// none. `None` where neither the name of a file nor an envelope tells.
    pub lag_time: Option<Duration>,
    /// Whether a process owns it. A cursor without an owner holds records back all the same.
    pub is_owned: bool,
    /// The process that owns it, where it can be seen.
    pub owner: Option<u32>,
    /// Bytes that were removed in front of it and that its reader does not know of: an upper bound.
    pub missing_bytes: u64,
    /// How often its reader skipped such bytes.
    pub overruns: u64,
    /// How many bytes that were: an upper bound.
    pub overrun_bytes: u64,
    /// When it did so last.
    pub overrun_at: Option<SystemTime>,
}

/// Up to how many bytes records are counted.
const COUNTED_BYTES_MAX: u64 = 1 << 20;

/// The state of every cursor, in the order of their names.
pub(crate) fn stat(core: &Arc<Core>) -> Result<Vec<CursorStat>> {
    let entries = CursorFile::of(core).cursor_entries()?.into_iter();
    let mut all: Vec<CursorStat> = entries
        .map(|(index, entry)| stat_of(core, index, CursorFile::of(core).within(entry)))
        .collect::<Result<_>>()?;
    all.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(all)
}

fn stat_of(core: &Arc<Core>, index: usize, entry: Entry) -> Result<CursorStat> {
    let begin = core.begin();
    let from = entry.lsn.max(begin);
    let bytes = extent::bytes_between(core, from, tail_word::published(core.words()))?;
    let lag_records = lag_records(core, from, bytes);
    // A commit of the log leaves a frame behind that is no record.
    let lag_bytes = if lag_records == Some(0) { 0 } else { bytes };
    let missing = (entry.lsn < begin).then(|| gap::removed(&**core, entry.lsn, begin, &entry.name));
    let is_owned = owner::is_owned(&core.files, index);
    let limits = CursorHold { max_bytes: entry.held_bytes_max, max_age: entry.held_age_max };
    Ok(CursorStat {
        lsn: entry.lsn,
        hold: entry.holds.then_some(limits),
        committed_at: clock::time_of(entry.committed_at),
        lag_bytes,
        lag_records,
        lag_time: lag_time(core, from, lag_bytes),
        is_owned,
        owner: if is_owned { owner::pid(&core.files, index) } else { None },
        missing_bytes: missing.map_or(0, |gap| gap.bytes_max),
        overruns: entry.overruns,
        overrun_bytes: entry.overrun_bytes,
        overrun_at: (entry.overruns > 0).then(|| clock::time_of(entry.overrun_at)),
        name: entry.name,
    })
}

fn lag_records(core: &Arc<Core>, from: Lsn, bytes: u64) -> Option<u64> {
    if bytes > COUNTED_BYTES_MAX {
        return None;
    }
    let mut reader = Reader::new(Arc::clone(core), from).ok()?;
    // No further: a look changes nothing, and a reader at the end pads what the dead left.
    let end = tail_word::published(core.words());
    let mut count = 0;
    while reader.position() < end && reader.next().ok()?.is_some() {
        count += 1;
    }
    Some(count)
}

fn lag_time(core: &Arc<Core>, from: Lsn, bytes: u64) -> Option<Duration> {
    if bytes == 0 {
        return Some(Duration::ZERO);
    }
    if core.files.geometry.has_envelope {
        let mut reader = Reader::new(Arc::clone(core), from).ok()?;
        let time = reader.next().ok()??.time()?;
        return Some(SystemTime::now().duration_since(time).unwrap_or_default());
    }
    let first = core.files.segment_of(from);
    let begun = Listing::read(&core.files.dir).ok()?.get(first)?.time?;
    Some(Duration::from_secs(clock::seconds().saturating_sub(begun)))
}
