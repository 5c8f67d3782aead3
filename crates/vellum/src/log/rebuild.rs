//! Finding out where a log begins and ends from its segments alone.
//!
//! Needed when the control file is gone, and after a reboot. Only records are believed: a framed
//! log ends behind its last whole frame (`recover`), a text log behind its last byte that is not
//! NUL.
//!
//! **If the process dies here**: nothing was changed but pads written into holes, and zeros over
//! what was cut; the next opener does it again and comes to the same end.

use std::path::Path;
use std::sync::Arc;

use crate::format::control::Geometry;
use crate::format::frame::Codec;
use crate::format::segment::SegmentHeader;
use crate::log::batch::CoreRef;
use crate::log::core::Core;
use crate::log::pad::{self, Reason};
use crate::log::recover::{self, Recovery};
use crate::log::window::open_file;
use crate::log::wipe;
use crate::segment::list;
use crate::segment::listing::{Listing, SegmentFile};
use crate::shared::cursor::Range;
use crate::shared::region::Region;
use crate::sys::filesystem::Filesystem;
use crate::{Error, ErrorKind, Layout, Lsn, OnFull, Result};

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
    dir: &Path,
    geometry: &Geometry,
    loss: Loss,
    access: Access,
) -> Result<Positions> {
    let mut firsts = list(dir)?;
    if access == Access::Change && geometry.cut != 0 {
        wipe::wipe(dir, geometry, Lsn::new(geometry.cut))?;
        firsts = list(dir)?;
    }
    let Some(newest) = firsts.last() else { return Ok(Positions::of_new_log(geometry)) };
    let shared = Arc::new(CoreRef(bare_core(dir, geometry)));
    match geometry.layout {
        // The newest segments may be gone now: they are cut with what was in them.
        Layout::Framed => recover::find_end(&shared, &firsts, loss, access),
        Layout::Text => {
            check_contiguous(&shared.0, &firsts)?;
            let begin = firsts[0];
            let tail = end_of_text(&shared, &firsts, access)?.max(begin);
            let allocated_end = Lsn::new(newest.get() + geometry.segment_capacity);
            // What is there after a power cut will be there after the next.
            let durable = if loss == Loss::Power { tail } else { begin };
            let checkpoint = Lsn::ZERO;
            Ok(Positions { begin, durable, tail, allocated_end, checkpoint, recovery: None })
        }
    }
}

/// A log without shared words, good for reading files.
pub(crate) fn bare_core(dir: &Path, geometry: &Geometry) -> Core {
    Core {
        dir: dir.to_path_buf(),
        geometry: *geometry,
        codec: Codec::new(geometry.secret),
        filesystem: Filesystem::Other(0),
        stage: None,
        block: 1,
        recovery: None,
        advice: None,
        mode: 0,
        prefault_bytes: geometry.segment_capacity,
        mapped_bytes_max: 0,
        on_full: OnFull::Error,
        writer: None,
        region: Region::on_heap(),
    }
}

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

/// Where the text ends: behind the last byte that is not NUL.
///
/// NULs before that were reserved by the dead, and are padded; or they were skipped at the end of
/// a segment, and are cut off its file as its writer was about to do.
fn end_of_text(shared: &Arc<CoreRef>, firsts: &[Lsn], access: Access) -> Result<Lsn> {
    let mut tail = firsts[0];
    let mut uncut: Vec<(Lsn, Lsn)> = Vec::new();
    let mut listing = Listing::read(&shared.0.dir)?;
    for first in firsts {
        let compressed = listing.get(*first).map(SegmentFile::content_len).transpose()?.flatten();
        if let Some(len) = compressed {
            // Whole, and before what is written.
            tail = tail.max(Lsn::new(first.get() + len.min(shared.0.capacity())));
            continue;
        }
        let mut text_end = *first;
        for Range { start, len } in text_runs(&shared.0, &mut listing, *first)? {
            if start > text_end && access == Access::Change {
                let hole = Range { start: text_end, len: start.get() - text_end.get() };
                pad::write(&shared.0, hole, Reason::Died)?;
            }
            text_end = Lsn::new(start.get() + len);
        }
        if text_end > *first {
            if access == Access::Change {
                for (first, end) in uncut.drain(..) {
                    let segment = shared.0.open_unmapped(first)?;
                    pad::cut_off(&segment, end)?;
                }
            }
            tail = text_end;
        }
        if text_end < shared.0.segment_end(*first) {
            uncut.push((*first, text_end));
        }
    }
    Ok(tail)
}

/// The stretches without NULs of a text segment.
pub(crate) fn text_runs(core: &Core, listing: &mut Listing, first: Lsn) -> Result<Vec<Range>> {
    const STEP: usize = 1 << 20;
    let segment = open_file(core, listing, first)?;
    let len = segment.data_len()?.min(core.capacity());
    let mut runs: Vec<Range> = Vec::new();
    let mut bytes = vec![0; STEP.min(len as usize)];
    let mut offset = 0;
    while offset < len {
        let wanted = bytes.len().min((len - offset) as usize);
        let count = segment.read(Lsn::new(first.get() + offset), &mut bytes[..wanted])?;
        let mut at = 0;
        while let Some(begin) = bytes[at..count].iter().position(|byte| *byte != 0) {
            let begin = at + begin;
            let rest = &bytes[begin..count];
            let run_len = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
            let start = Lsn::new(first.get() + offset + begin as u64);
            match runs.last_mut().filter(|run| run.end() == start) {
                Some(run) => run.len += run_len as u64,
                None => runs.push(Range { start, len: run_len as u64 }),
            }
            at = begin + run_len;
        }
        if count < wanted {
            break;
        }
        offset += count as u64;
    }
    Ok(runs)
}
