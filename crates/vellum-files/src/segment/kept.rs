//! Segment files that stay open from one call to the next, for those that read single records:
//! opening a file costs several times as much as reading a record of it.
//!
//! They are few, and are used in the second in which they were opened. So a file that was replaced
//! or removed is noticed a second later, and one that was trimmed does not take space for long
//! where the process keeps reading or appending.
//!
//! No thread waits for another: one that finds the files in use opens the file anew.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};

use crate::Lsn;
use crate::segment::open::ReadSegment;
use crate::sys::fork::Inherit;

/// How many are kept.
const FILES_MAX: usize = 4;

/// When a file was opened: in another epoch there may be another with its positions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// The epoch of the log.
    pub epoch: u64,
    /// Seconds since the machine started.
    pub second: u64,
}

/// The files of one log that one process keeps open.
#[derive(Default)]
pub struct KeptFiles {
    kept: RwLock<Kept>,
    /// Bytes that the last record took: the next one may take as many.
    pub last_len: AtomicU64,
}

#[derive(Default)]
struct Kept {
    stamp: Stamp,
    /// The newest last.
    segments: Vec<Arc<ReadSegment>>,
}

impl KeptFiles {
    /// The segment at `first`, or its stage, if it was opened at that time.
    pub(crate) fn get(
        &self,
        stamp: Stamp,
        first: Lsn,
        is_staged: bool,
    ) -> Option<Arc<ReadSegment>> {
        let kept = self.kept.try_read().ok().filter(|kept| kept.stamp == stamp)?;
        let mut segments = kept.segments.iter();
        segments.find(|segment| segment.is_at(first, is_staged)).cloned()
    }

    /// Keeps a file that was opened at that time. An unpacked file would take memory.
    pub(crate) fn keep(&self, stamp: Stamp, segment: &Arc<ReadSegment>) {
        let Ok(mut kept) = self.kept.try_write() else { return };
        if kept.stamp != stamp {
            *kept = Kept { stamp, segments: Vec::new() };
        }
        if !segment.is_unpacked() {
            let excess = (kept.segments.len() + 1).saturating_sub(FILES_MAX);
            kept.segments.drain(..excess);
            kept.segments.push(Arc::clone(segment));
        }
    }

    /// Closes them; those in use when they are no longer.
    pub fn close(&self) {
        if let Ok(mut kept) = self.kept.try_write() {
            kept.segments.clear();
        }
    }

    /// Notes how many bytes a record takes.
    pub fn note_len(&self, len: u64) {
        if self.last_len.load(Ordering::Relaxed) != len {
            self.last_len.store(len, Ordering::Relaxed);
        }
    }
}

impl Inherit for KeptFiles {
    /// Their numbers may be those of other files by now, so they are left to the end of the child.
    fn disown(&self) {}
}
