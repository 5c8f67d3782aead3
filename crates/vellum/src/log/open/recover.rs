//! Finding out where a log begins and ends from its segments alone.
//!
//! Needed when the control file is gone, and after a reboot. Only records are believed: a framed
//! log ends behind its last whole frame (`framed::recover`), in the segments or in the stage, a
//! text log behind its last byte that is not NUL (`text::recover`).
//!
//! **If the process dies here**: nothing was changed but pads written into holes, and zeros over
//! what was cut; the next opener does it again and comes to the same end.

use crate::files::Files;
use crate::files::view::Still;
use crate::format::control::Geometry;
use crate::log::layout::framed;
use crate::log::layout::text;
use crate::log::open::zero_tail;
use crate::log::state::core::Core;
use crate::log::state::positions::{Access, Evidence, Loss, Positions};
use crate::segment::list;
use crate::segment::rights::Rights;
use crate::shared::commit;
use crate::shared::tail_word;
use crate::sys::Dir;
use crate::{Layout, Lsn, Result};

/// Works out the positions of the log in `dir`.
pub(crate) fn scan(
    dir: &Dir,
    geometry: &Geometry,
    evidence: Evidence<'_>,
    access: Access,
) -> Result<Positions> {
    let mut firsts = list(dir)?;
    if access == Access::Change && geometry.cut != 0 {
        zero_tail::write(dir, geometry, Lsn::new(geometry.cut), &mut false)?;
        firsts = list(dir)?;
    }
    if firsts.is_empty() {
        return Ok(Positions::of_new_log(geometry));
    }
    let log = Still::of(&Files::new(dir, geometry, Rights::default()));
    match geometry.layout {
        // The newest segments may be gone now: they are cut with what was in them.
        Layout::Framed => framed::recover::find_end(&log, &firsts, evidence, access),
        Layout::Text => text::recover::find_end(&log, &firsts, evidence.loss, access),
    }
}

/// Where a log goes on that lacks its newest file: behind the words of `core`, which nobody uses.
pub(crate) fn find_end_behind_newest(core: &Core) -> Result<Positions> {
    let evidence = Evidence::without_words(Loss::Words, None);
    let found = scan(&core.files.dir, &core.files.geometry, evidence, Access::Change)?;
    let words = core.words();
    let positions = Positions {
        begin: core.begin(),
        durable: commit::durable(&words.commits),
        tail: tail_word::tail(words).max(found.tail),
        staged_from: tail_word::tail(words).max(found.tail),
        allocated_end: Lsn::new(words.allocated_end()).max(found.allocated_end),
        ..found
    };
    Ok(text::recover::behind_missing(&core.files, positions, &list(&core.files.dir)?))
}
