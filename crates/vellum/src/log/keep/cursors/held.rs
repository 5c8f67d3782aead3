//! Up to where records may be removed: not in front of a cursor that holds them back.
//!
//! A cursor may hold no more than so many bytes, and nothing older than so long. The excess is
//! counted in whole files, because whole files are removed.

use crate::format::cursor::Entry;
use crate::log::keep::cursors::file::CursorFile;
use crate::log::layout::closed_files;
use crate::log::read::time_index;
use crate::log::state::core::Core;
use crate::segment::listing::{Listing, SegmentFile};
use crate::shared::tail_word;
use crate::sys::clock;
use crate::{Lsn, Result};

/// The files with something in them, oldest first, and the known facts of each.
struct Files {
    all: Vec<SegmentFile>,
    lens: Vec<u64>,
    /// When the last record of each was written, at the latest, in seconds since 1970.
    ends: Vec<u64>,
    now: u64,
}

impl CursorFile<'_> {
    /// The oldest position that has to stay: for cursors that were `synced` as they are now, and
    /// for those that hold at this moment. [`Lsn::MAX`] where none does.
    ///
    /// `begin` is then raised under the prepare lock, as a cursor is set.
    pub(crate) fn held_from(self, synced: Vec<Entry>) -> Result<Lsn> {
        let holding = [self.holding_cursors()?, synced].concat();
        let has_limit =
            |entry: &Entry| entry.held_bytes_max.is_some() || entry.held_age_max.is_some();
        if !holding.iter().any(has_limit) {
            return Ok(holding.iter().map(|entry| entry.lsn).min().unwrap_or(Lsn::MAX));
        }
        let files = Files::of(self.core, holding.iter().any(|entry| entry.held_age_max.is_some()))?;
        Ok(holding.iter().map(|entry| files.held_by(entry)).min().unwrap_or(Lsn::MAX))
    }
}

impl Files {
    fn of(core: &Core, has_ages: bool) -> Result<Files> {
        let mut all = Listing::read(&core.files.dir)?.files;
        let closed = Listing::count_before(&all, tail_word::published(core.words()));
        all.truncate(closed + 1);
        if has_ages && !core.files.geometry.layout.names_have_times() {
            time_index::date(core, &mut all)?;
        }
        let now = clock::seconds();
        let (lens, ends) =
            (closed_files::lens_of(core, &all)?, closed_files::ends_of(core, &all, now));
        Ok(Files { all, lens, ends, now })
    }

    /// The oldest position that the cursor keeps.
    fn held_by(&self, entry: &Entry) -> Lsn {
        let of_lsn = self.all.iter().rposition(|file| file.first <= entry.lsn).unwrap_or(0);
        let (mut start, mut index) = (entry.lsn, of_lsn);
        while index + 1 < self.all.len() && self.is_too_much(entry, start, index) {
            index += 1;
            start = self.all[index].first.max(start);
        }
        start
    }

    /// Whether to keep everything from `start` on, in the file at `index`, is more than the cursor
    /// may.
    fn is_too_much(&self, entry: &Entry, start: Lsn, index: usize) -> bool {
        let done = start.get().saturating_sub(self.all[index].first.get()).min(self.lens[index]);
        let bytes = self.lens[index..].iter().sum::<u64>() - done;
        let is_old = entry
            .held_age_max
            .is_some_and(|age| self.ends[index].saturating_add(age.as_secs()) <= self.now);
        is_old || entry.held_bytes_max.is_some_and(|most| bytes > most)
    }
}
