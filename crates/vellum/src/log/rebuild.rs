//! Finding out where a log begins and ends from its segments alone.
//!
//! Needed when the control file is gone, and after a reboot. Only records are believed: a framed
//! log ends behind its last whole frame, a text log behind its last byte that is not NUL.
//!
//! **If the process dies here**: nothing was changed but pads written into holes; the next opener
//! does it again and comes to the same end.

use std::path::Path;
use std::sync::Arc;

use crate::format::control::Geometry;
use crate::format::frame::{Codec, Kind};
use crate::format::segment::SegmentHeader;
use crate::log::batch::CoreRef;
use crate::log::core::Core;
use crate::log::frames::{self, Found};
use crate::log::pad::{self, Reason};
use crate::log::window::Window;
use crate::segment::file::ReadSegment;
use crate::segment::list;
use crate::shared::cursor::Range;
use crate::shared::region::Region;
use crate::sys::filesystem::Filesystem;
use crate::{Error, ErrorKind, Layout, Lsn, Result};

/// Where a log begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Positions {
    pub(crate) begin: Lsn,
    pub(crate) tail: Lsn,
    pub(crate) allocated_end: Lsn,
}

/// What to do about space in the middle that was reserved and never written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holes {
    /// Pad it, so that readers pass over it.
    Pad,
    /// Leave it: nothing is written.
    Leave,
}

impl Positions {
    /// Of a log with nothing in it. Positions start behind a segment's worth, so that none is 0.
    pub(crate) fn of_new_log(geometry: &Geometry) -> Positions {
        let start = Lsn::new(geometry.segment_capacity);
        Positions { begin: start, tail: start, allocated_end: start }
    }
}

/// Works out the positions of the log in `dir`.
pub(crate) fn scan(dir: &Path, geometry: &Geometry, holes: Holes) -> Result<Positions> {
    let firsts = list(dir)?;
    let (Some(oldest), Some(newest)) = (firsts.first(), firsts.last()) else {
        return Ok(Positions::of_new_log(geometry));
    };
    check_contiguous(dir, geometry, &firsts)?;
    let allocated_end = Lsn::new(newest.get() + geometry.segment_capacity);
    let shared = Arc::new(CoreRef(bare_core(dir, geometry)));
    let (begin, tail) = match geometry.layout {
        Layout::Framed => {
            let begin = header(&shared.0, *oldest)?.begin.get();
            let begin = Lsn::new(begin.max(oldest.get()));
            (begin, end_of_frames(&shared, begin, allocated_end, holes)?)
        }
        Layout::Text => (*oldest, end_of_text(&shared, &firsts)?),
    };
    Ok(Positions { begin, tail: tail.max(begin), allocated_end })
}

/// A log without shared words, good for reading files.
fn bare_core(dir: &Path, geometry: &Geometry) -> Core {
    Core {
        dir: dir.to_path_buf(),
        geometry: *geometry,
        codec: Codec::new(geometry.secret),
        filesystem: Filesystem::Other(0),
        mode: 0,
        prefault_bytes: geometry.segment_capacity,
        mapped_bytes_max: 0,
        writer: None,
        region: Region::on_heap(),
    }
}

fn check_contiguous(dir: &Path, geometry: &Geometry, firsts: &[Lsn]) -> Result<()> {
    for first in firsts {
        if first.get() == 0 || !first.get().is_multiple_of(geometry.segment_capacity) {
            let message = format!(
                "the file does not belong here: segments of this log start at multiples of {}",
                geometry.segment_capacity
            );
            let path = crate::format::segment::path(dir, *first);
            return Err(Error::new(ErrorKind::Corrupt, message).at_path(&path));
        }
    }
    for pair in firsts.windows(2) {
        let next = Lsn::new(pair[0].get() + geometry.segment_capacity);
        if pair[1] != next {
            // Opening the missing file gives the error.
            ReadSegment::open(dir, geometry, next)?;
        }
    }
    Ok(())
}

fn header(core: &Core, first: Lsn) -> Result<SegmentHeader> {
    let segment = ReadSegment::open(&core.dir, &core.geometry, first)?;
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

/// Where the frames end: behind the last whole one.
///
/// Reads all of the log, because a hole may be anywhere; nothing else knows of it.
fn end_of_frames(shared: &Arc<CoreRef>, begin: Lsn, limit: Lsn, holes: Holes) -> Result<Lsn> {
    let mut window = Window::new(Arc::clone(shared));
    let mut lsn = behind_trimmed_batch(shared, &mut window, begin, limit)?;
    while lsn < limit {
        if let Found::Frame { next, .. } = frames::look_whole(&shared.0, &mut window, lsn, limit)? {
            lsn = next;
            continue;
        }
        let Some(next) = frames::find_next(shared, lsn, limit) else { break };
        if holes == Holes::Pad {
            let len = next.get() - lsn.get();
            pad::write(&shared.0, Range { start: lsn, len }, Reason::Died)?;
            window.forget();
        }
        lsn = next;
    }
    Ok(lsn)
}

/// A trim may have left the later records of a batch, which are whole without their batch's start.
fn behind_trimmed_batch(
    shared: &Arc<CoreRef>,
    window: &mut Window,
    begin: Lsn,
    limit: Lsn,
) -> Result<Lsn> {
    let mut lsn = begin;
    while let Found::Frame { kind: Kind::Member, next, .. } =
        frames::look(&shared.0, window, lsn, limit)?
    {
        lsn = next;
    }
    Ok(lsn)
}

/// Where the text ends: behind the last byte that is not NUL.
fn end_of_text(shared: &Arc<CoreRef>, firsts: &[Lsn]) -> Result<Lsn> {
    const STEP: u64 = 1 << 20;
    let core = &shared.0;
    for first in firsts.iter().rev() {
        let segment = ReadSegment::open(&core.dir, &core.geometry, *first)?;
        let mut end = segment.data_len()?.min(core.capacity());
        while end > 0 {
            let start = end.saturating_sub(STEP);
            let mut bytes = vec![0; (end - start) as usize];
            let count = segment.read(Lsn::new(first.get() + start), &mut bytes)?;
            if let Some(last) = bytes[..count].iter().rposition(|byte| *byte != 0) {
                return Ok(Lsn::new(first.get() + start + last as u64 + 1));
            }
            end = start;
        }
    }
    Ok(firsts[0])
}
