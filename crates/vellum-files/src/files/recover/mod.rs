//! Finding out where a log begins and ends from its segments alone.
//!
//! Needed when the control file is gone, and after a reboot. Only records are believed: a framed
//! log ends behind its last whole frame (`recover::framed`), in the segments or in the stage, a
//! text log behind its last byte that is not NUL (`recover::text`).
//!
//! [`find_end`] decides and changes nothing. The changes are a plan (`recover::plan`), which a
//! reader leaves alone. One listing of the directory serves both.
//!
//! **If the process dies here**: nothing was changed but pads written into holes, and zeros over
//! the bytes that were cut; the next opener does it again and comes to the same end.

pub mod framed;
pub mod plan;
pub mod positions;
pub mod staged;
pub mod text;
pub mod zero_tail;

use std::sync::Arc;

use crate::files::Files;
use crate::files::recover::plan::{Plan, Step};
use crate::files::recover::positions::{Evidence, Positions};
use crate::segment::listing::Listing;
use crate::{Layout, Lsn, Result};

/// Where the log begins and ends as its files are, and the changes that recovery would make.
pub fn find_end(
    files: &Files,
    listing: &Arc<Listing>,
    evidence: Evidence<'_>,
) -> Result<(Positions, Plan)> {
    if listing.files.is_empty() {
        let positions = Positions::of_new_log(&files.geometry);
        return Ok((positions, Plan { steps: Vec::new(), positions }));
    }
    match files.geometry.layout {
        Layout::Framed => framed::find_end(files, &listing.firsts(), evidence),
        Layout::Text => text::find_end(files, listing, evidence.loss),
    }
}

/// Finds the end of the log and makes its files end there. Returns the files that are there then.
pub fn recover(
    files: &Files,
    listing: Arc<Listing>,
    evidence: Evidence<'_>,
) -> Result<(Positions, Arc<Listing>)> {
    let cut = Lsn::new(files.geometry.cut);
    // The newest segments may be gone then: they are cut with the records in them.
    let finish = [Step::Clear { from: cut, zeros: None }];
    let steps = if cut == Lsn::ZERO { &[] } else { &finish[..] };
    let listing = plan::carry_out(files, listing, steps)?;
    let (_, Plan { steps, positions }) = find_end(files, &listing, evidence)?;
    Ok((positions, plan::carry_out(files, listing, &steps)?))
}

#[cfg(test)]
mod tests;
