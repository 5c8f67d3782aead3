//! The whole frames in the stage behind the end of the segments.
//!
//! After a reboot there are mostly none, for the kernel hardly writes stages to the device. But
//! where the words are not believed and the machine was not off (a container with a boot id of its
//! own, a filesystem that changes inode numbers, a copy), the stage has everything that was
//! appended and not committed.
//!
//! No words are needed to believe it. A frame holds at one position of one log, and a stage says in
//! which epoch it was made. In one epoch a position is given out once. So a frame that is whole in
//! a stage of the newest epoch is the one that was appended there, whether the page cache or the
//! device kept it. Stages of earlier epochs may hold frames that were cut off since, and are left
//! alone. The row ends where one frame is missing, so there is never a gap.
//!
//! **If the process dies here**: the segments have more of the same frames. The epoch has not moved
//! on before they are durable, so the next opener finds the rest in the stage again.

use crate::files::Files;
use crate::files::frames;
use crate::files::recover::positions::Evidence;
use crate::files::view::Still;
use crate::files::window::Window;
use crate::format::control::Geometry;
use crate::segment::stage;
use crate::{Fill, Lsn, Result};

/// Bytes copied at a time.
const STEP: u64 = 256 << 10;

/// Where the row of frames ends that the stage has from `end` on: `end` where it has none.
pub(crate) fn end_behind(
    files: &Files,
    evidence: Evidence<'_>,
    end: Lsn,
    limit: Lsn,
) -> Result<Lsn> {
    let Geometry { fill, cut, .. } = files.geometry;
    // A process that truncates has committed before; staged frames behind the cut are to be gone.
    if fill != Fill::Staged || cut != 0 {
        return Ok(end);
    }
    let limit = end_of_stages(files, evidence.epoch, end, limit)?;
    let mut window = Window::new(Still::staged(files, Lsn::ZERO));
    frames::end_of_row(files, &mut window, end, limit, evidence.reserved)
}

/// Writes the bytes of the stage from `begin` to `end` to the segments; the caller syncs them.
pub(crate) fn write_behind(files: &Files, begin: Lsn, end: Lsn) -> Result<()> {
    let mut window = Window::new(Still::staged(files, Lsn::ZERO));
    let mut lsn = begin;
    while lsn < end {
        let segment = files.open_unmapped(files.segment_of(lsn), None)?;
        let segment_end = files.segment_end(lsn).min(end);
        while lsn < segment_end {
            let wanted = STEP.min(segment_end.get() - lsn.get());
            segment.write(window.fetch(lsn, wanted, segment_end)?, segment.offset_of(lsn))?;
            lsn = Lsn::new(lsn.get() + wanted);
        }
    }
    Ok(())
}

/// Up to where there are stages of this epoch, from `from` on.
fn end_of_stages(files: &Files, epoch: u64, from: Lsn, limit: Lsn) -> Result<Lsn> {
    let mut end = from;
    while end < limit && stage::is_of_epoch(&files.dir, epoch, files.segment_of(end))? {
        end = files.segment_end(end).min(limit);
    }
    Ok(end)
}
