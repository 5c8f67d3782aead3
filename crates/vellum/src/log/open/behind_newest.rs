//! A text log that lacks its newest file: it continues in the next one.

use std::sync::Arc;

use crate::files::recover::positions::{Evidence, Loss, Positions};
use crate::files::recover::{self, text};
use crate::log::state::core::Core;
use crate::segment::listing::Listing;
use crate::shared::{commit, tail_word};
use crate::{Lsn, Result};

/// Whether the file is gone that the next record would go to, or that it would have to leave. No
/// process is attached.
pub(crate) fn lacks_newest(core: &Core, listing: &Listing) -> bool {
    let active = core.files.segment_of(tail_word::tail(core.words()));
    let is_made = core.words().allocated_end() > active.get();
    core.files.geometry.layout.names_have_times() && is_made && listing.get(active).is_none()
}

/// Where a log continues that lacks its newest file: behind the words of `core`, which no process
/// uses.
pub(crate) fn find_end(core: &Core, listing: &Arc<Listing>) -> Result<Positions> {
    let evidence = Evidence::without_words(Loss::Words, None);
    let (found, listing) = recover::recover(&core.files, Arc::clone(listing), evidence)?;
    let words = core.words();
    let positions = Positions {
        begin: core.begin(),
        durable: commit::durable(&words.commits),
        tail: tail_word::tail(words).max(found.tail),
        staged_from: tail_word::tail(words).max(found.tail),
        allocated_end: Lsn::new(words.allocated_end()).max(found.allocated_end),
        ..found
    };
    Ok(text::behind_missing(&core.files, positions, &listing.firsts()))
}
