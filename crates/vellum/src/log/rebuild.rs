//! Finding out where a log begins and ends from its segments alone.
//!
//! Needed when the control file is gone, and after a reboot. Only records are believed: a framed
//! log ends behind its last whole frame (`recover`), a text log behind its last byte that is not
//! NUL (`text_end`).
//!
//! **If the process dies here**: nothing was changed but pads written into holes, and zeros over
//! what was cut; the next opener does it again and comes to the same end.

use std::sync::Arc;

use crate::format::control::Geometry;
use crate::format::frame::Codec;
use crate::format::segment::SegmentHeader;
use crate::log::batch::CoreRef;
use crate::log::core::Core;
use crate::log::recover::{self, Recovery};
use crate::log::removal::Watch;
use crate::log::{text_end, wipe};
use crate::segment::list;
use crate::segment::rights::Rights;
use crate::segment::stage::Stage;
use crate::shared::region::Region;
use crate::sys::Dir;
use crate::sys::filesystem::Filesystem;
use crate::{Error, ErrorKind, Fill, Layout, Lsn, OnFull, OnStageFull, Result};

/// Where a log begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Positions {
    pub(crate) begin: Lsn,
    /// End of what is known to survive a power cut.
    pub(crate) durable: Lsn,
    pub(crate) tail: Lsn,
    pub(crate) allocated_end: Lsn,
    pub(crate) checkpoint: Lsn,
    pub(crate) recovery: Option<Recovery>,
}

/// What has happened to the log, and so what damage may be put down to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// The control file is gone and nothing else: holes are those of dead writers, and are padded.
    Words,
    /// The device may have stopped in the middle of a write: what follows a hole is cut.
    Power,
}

/// Whether the log may be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Change,
    Look,
}

impl Positions {
    /// Of a log with nothing in it. Positions start behind a segment's worth, so that none is 0.
    pub(crate) fn of_new_log(geometry: &Geometry) -> Positions {
        let start = Lsn::new(geometry.segment_capacity);
        Positions {
            begin: start,
            durable: start,
            tail: start,
            allocated_end: start,
            checkpoint: Lsn::ZERO,
            recovery: None,
        }
    }
}

/// Works out the positions of the log in `dir`.
pub(crate) fn scan(
    dir: &Dir,
    geometry: &Geometry,
    loss: Loss,
    access: Access,
) -> Result<Positions> {
    let mut firsts = list(dir)?;
    if access == Access::Change && geometry.cut != 0 {
        wipe::wipe(dir, geometry, Lsn::new(geometry.cut), &mut false)?;
        firsts = list(dir)?;
    }
    if firsts.is_empty() {
        return Ok(Positions::of_new_log(geometry));
    }
    let shared = Arc::new(CoreRef(bare_core(dir, geometry)));
    match geometry.layout {
        // The newest segments may be gone now: they are cut with what was in them.
        Layout::Framed => recover::find_end(&shared, &firsts, loss, access),
        Layout::Text => text_end::find_end(&shared, &firsts, loss, access),
    }
}

/// A log without shared words, good for reading files.
pub(crate) fn bare_core(dir: &Dir, geometry: &Geometry) -> Core {
    Core {
        dir: dir.clone(),
        geometry: *geometry,
        codec: Codec::new(geometry.secret),
        filesystem: Filesystem::Other(0),
        stage: None,
        block: 1,
        recovery: None,
        advice: None,
        // Makes no files.
        rights: Rights::default(),
        prefault_bytes: geometry.segment_capacity,
        mapped_bytes_max: 0,
        timeout: None,
        on_full: OnFull::Error,
        staged_segments_max: 0,
        on_stage_full: OnStageFull::Error,
        options: Box::default(),
        watch: Watch::default(),
        writer: None,
        region: Region::on_heap(),
    }
}

/// The same with the words of a control file, and the stage that they tell of.
pub(crate) fn core_with(dir: &Dir, geometry: &Geometry, region: Region) -> Core {
    let mut core = bare_core(dir, geometry);
    core.stage = (geometry.fill == Fill::Staged).then(|| Stage::of(dir, Filesystem::Other(0)));
    core.region = region;
    core
}

/// Refuses files that are no segments of this log; of a framed log, also if one is missing between them. In a
/// text log that is a gap, of which readers tell.
pub(crate) fn check_contiguous(core: &Core, firsts: &[Lsn]) -> Result<()> {
    let capacity = core.capacity();
    for first in firsts {
        if first.get() == 0 || !first.get().is_multiple_of(capacity) {
            let message = format!(
                "the file does not belong here: segments of this log start at multiples of \
                 {capacity}"
            );
            let path = core.segment_path(*first);
            return Err(Error::new(ErrorKind::Corrupt, message).at_path(&path));
        }
    }
    if core.geometry.layout == Layout::Text {
        return Ok(());
    }
    for pair in firsts.windows(2) {
        let next = Lsn::new(pair[0].get() + capacity);
        if pair[1] != next {
            // Opening the missing file gives the error.
            core.open_to_read(next)?;
        }
    }
    Ok(())
}

pub(crate) fn header(core: &Core, first: Lsn) -> Result<SegmentHeader> {
    let segment = core.open_to_read(first)?;
    let mut bytes = [0; size_of::<SegmentHeader>()];
    let count = segment.read_header(&mut bytes)?;
    let header = SegmentHeader::parse(&bytes[..count]);
    let fault = |reason: &str| {
        Error::new(ErrorKind::Corrupt, format!("the file {reason}")).at_path(&segment.path)
    };
    let header = header.map_err(fault)?;
    if header.secret.get() != core.geometry.secret || header.first.get() != first.get() {
        return Err(fault("is a segment of another log or position"));
    }
    Ok(header)
}
