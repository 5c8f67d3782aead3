//! What is whole in the stage behind the end of the segments.
//!
//! After a reboot that is mostly nothing, for the kernel hardly writes stages to the device. But
//! where the words are not believed and the machine was not off (a container with a boot id of its
//! own, a filesystem that changes inode numbers, a copy), the stage has everything that was
//! appended and not committed.
//!
//! No words are needed to believe it. A frame holds at one position of one log, and a stage says in
//! which epoch it was made. In one epoch a position is given out once. So a frame that is whole in
//! a stage of the newest epoch is what was appended there, whether the page cache or the device
//! kept it. Stages of earlier epochs may hold what was cut off since, and are left alone. The row
//! ends where one frame is missing, so there is never a gap.
//!
//! **If the process dies here**: the segments have more of the same frames. The epoch has not moved
//! on before they are durable, so the next opener finds the rest in the stage again.

use std::sync::Arc;

use crate::format::control::Geometry;
use crate::log::layout::framed::frames;
use crate::log::read::window::Window;
use crate::log::state::core::{Core, core_with};
use crate::log::state::positions::Evidence;
use crate::shared::region::Region;
use crate::{Fill, Lsn, Result};

/// Bytes copied at a time.
const STEP: u64 = 256 << 10;

/// Where the row of frames ends that the stage goes on with from `end` on: `end` where it has none.
pub(crate) fn end_behind(core: &Core, evidence: Evidence<'_>, end: Lsn, limit: Lsn) -> Result<Lsn> {
    let Geometry { fill, cut, .. } = core.files.geometry;
    // A process that truncates has committed before; what is staged behind the cut is to be gone.
    if fill != Fill::Staged || cut != 0 {
        return Ok(end);
    }
    let staged = staged(core);
    let limit = end_of_stages(&staged, evidence.epoch, end, limit)?;
    frames::end_of_row(
        &staged,
        &mut Window::new(Arc::clone(&staged)),
        end,
        limit,
        evidence.reserved,
    )
}

/// Writes what the stage has from `begin` to `end` to the segments; the caller syncs them.
pub(crate) fn write_behind(core: &Core, begin: Lsn, end: Lsn) -> Result<()> {
    let mut window = Window::new(staged(core));
    let mut lsn = begin;
    while lsn < end {
        let segment = core.open_unmapped(core.files.segment_of(lsn))?;
        let segment_end = core.files.segment_end(lsn).min(end);
        while lsn < segment_end {
            let wanted = STEP.min(segment_end.get() - lsn.get());
            segment.write(window.fetch(lsn, wanted, segment_end)?, segment.offset_of(lsn))?;
            lsn = Lsn::new(lsn.get() + wanted);
        }
    }
    Ok(())
}

/// The same log, of which all is read from the stage.
fn staged(core: &Core) -> Arc<Core> {
    Arc::new(core_with(&core.files.dir, &core.files.geometry, Region::on_heap()))
}

/// Up to where there are stages of this epoch, from `from` on.
fn end_of_stages(core: &Core, epoch: u64, from: Lsn, limit: Lsn) -> Result<Lsn> {
    let mut end = from;
    while end < limit
        && let Some(stage) = &core.commits.stage
        && stage.is_of_epoch(epoch, core.files.segment_of(end))?
    {
        end = core.files.segment_end(end).min(limit);
    }
    Ok(end)
}
