//! The segments that one process has open.

use std::sync::Arc;

use crate::log::append::Appender;
use crate::log::layout::limits;
use crate::log::state::attachment::{Attachment, LocalSlot, OpenSegments};
use crate::lsn::Range;
use crate::segment::file::Segment;
use crate::{Lsn, Result};

/// Text segments that a process keeps open, beside those that its appends are busy with: the
/// newest, and the one before it for late writers.
const ROTATED_SEGMENTS_MAX: u64 = 2;
/// Segments that a reservation has open before it is made.
const SEGMENTS_IN_HAND: usize = 4;
/// Stages that are over and stay mapped: one is the spare, one may have been made the next.
const USED_STAGES_MAX: usize = 2;

impl Attachment {
    /// Lets idle slots drop the segments that have gone from the list.
    fn forget_segments(&self, gone: &[Lsn]) {
        if gone.is_empty() {
            return;
        }
        for mut slot in self.slots.all_idle() {
            if slot.segment.as_ref().is_some_and(|segment| gone.contains(&segment.file.first)) {
                slot.forget_segment();
            }
        }
    }
}

impl Appender<'_> {
    /// The open segment that holds `lsn`.
    #[inline]
    pub(crate) fn segment(self, slot: &mut LocalSlot, lsn: Lsn) -> Result<&Segment> {
        if !slot.was_in_segment_of(self.writer.core.files.capacity(), lsn) || slot.segment.is_none()
        {
            self.change_segment(slot, lsn)?;
        }
        Ok(slot.segment.as_ref().expect("was just set"))
    }

    #[cold]
    fn change_segment(self, slot: &mut LocalSlot, lsn: Lsn) -> Result<()> {
        let first = self.writer.core.files.segment_of(lsn);
        let held = slot.held(first).map(Arc::clone);
        if held.is_none() {
            slot.opened = (Lsn::ZERO, Lsn::ZERO);
        }
        (slot.segment, slot.segment_first) = (None, Lsn::ZERO);
        slot.segment = Some(held.map_or_else(|| self.open_segment(first), Ok)?);
        slot.segment_first = first;
        Ok(())
    }

    /// Opens the segments of `range` before it is reserved: a missing descriptor or lack of memory
    /// fails here, while no other process waits. A record over many segments opens the later ones
    /// as it comes to them.
    #[cold]
    pub(crate) fn open_range(self, slot: &mut LocalSlot, range: Range) -> Result<()> {
        slot.let_go();
        slot.opened = (Lsn::ZERO, Lsn::ZERO);
        let mut first = self.writer.core.files.segment_of(range.start);
        let mut more = Vec::new();
        while first < range.end() && more.len() < SEGMENTS_IN_HAND {
            let held = slot.held(first).map(Arc::clone);
            more.push(held.map_or_else(|| self.open_segment(first), Ok)?);
            first = self.writer.core.files.segment_end(first);
        }
        if !self.writer.core.has_mapping() {
            limits::check_size_limit(self.writer.core)?;
        }
        let end = self.writer.core.files.segment_end(Lsn::new(range.end().get() - 1));
        slot.opened = (self.writer.core.files.segment_of(range.start), end);
        if let [only] = &more[..] {
            (slot.segment, slot.segment_first) = (Some(Arc::clone(only)), only.file.first);
        } else {
            slot.more = more;
        }
        Ok(())
    }

    pub(crate) fn open_segment(self, first: Lsn) -> Result<Arc<Segment>> {
        let mut open = self.writer.attachment.open_segments();
        if let Some(segment) = open.find(first) {
            return Ok(segment);
        }
        // First, because the file of a stage that is over may be that of this one.
        self.forget_gone_of(&mut open);
        let core = self.writer.core;
        let segment = Arc::new(core.open_segment(first, &mut open.used_stages)?);
        open.list.push(Arc::clone(&segment));
        // Closed text files are for others to remove or compress, which an open one resists.
        let most = if core.files.geometry.layout.rotates() { ROTATED_SEGMENTS_MAX } else { 64 };
        let budget = core.ready.mapped_bytes_max / segment.mapped_len().max(1);
        self.keep_within(&mut open, budget.clamp(1, most) as usize);
        Ok(segment)
    }

    /// Closes the oldest segments beyond `budget`, and first of stages that are over.
    fn keep_within(self, open: &mut OpenSegments, budget: usize) {
        let used_max = budget.saturating_sub(open.list.len()).min(USED_STAGES_MAX);
        let excess = open.used_stages.len().saturating_sub(used_max);
        open.used_stages.drain(..excess);
        if open.list.len() > budget {
            open.list.sort_unstable_by_key(|segment| segment.file.first);
            let excess = open.list.len() - budget;
            let oldest: Vec<_> =
                open.list.drain(..excess).map(|segment| segment.file.first).collect();
            self.writer.attachment.forget_segments(&oldest);
        }
    }

    /// Closes segments whose files were removed: as long as they are open, they take space.
    pub(crate) fn forget_gone(self) {
        self.forget_gone_of(&mut self.writer.attachment.open_segments());
    }

    fn forget_gone_of(self, open: &mut OpenSegments) {
        let core = self.writer.core;
        // Durable records have left the stage; a slot would keep its memory.
        let begin = core.stage_begin().unwrap_or(core.begin());
        let is_gone = |first: Lsn| core.files.segment_end(first) <= begin;
        let gone: Vec<_> =
            open.list.extract_if(.., |segment| is_gone(segment.file.first)).collect();
        let firsts: Vec<_> = gone.iter().map(|segment| segment.file.first).collect();
        self.writer.attachment.forget_segments(&firsts);
        if core.commits.stage.is_some() {
            // Unless an append has it in use.
            let gone = gone.into_iter().filter_map(Arc::into_inner);
            open.used_stages.extend(gone.filter_map(Segment::into_used_stage));
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::log::append::Append;
    use crate::log::commit::Commit;
    use crate::log::open::enter;
    use crate::{Options, Tuning, sys};

    #[test]
    fn a_stage_that_is_used_again_keeps_its_mapping() {
        let dir = tempfile::tempdir().unwrap();
        let options = Options::wal().tuning(Tuning::new().segment_capacity_bytes(16384));
        let log = enter::open(&dir.path().join("log"), &options).unwrap();
        let mut maps = HashMap::new();
        let mut firsts = Vec::new();
        for _ in 0..100 {
            let lsn = Append::of(&log).append_record(&[7; 1000]).unwrap();
            Commit::of(&log).commit(lsn).unwrap();
            let first = log.files.segment_of(lsn);
            if firsts.last() != Some(&first) {
                firsts.push(first);
                let segment = Appender::of(log.writer().unwrap()).open_segment(first).unwrap();
                let map = segment.with_map().unwrap().1.as_ptr();
                let file = sys::file::identity(segment.fd()).unwrap();
                assert_eq!(*maps.entry(file).or_insert(map), map, "of {first}");
            }
        }
        assert!(firsts.len() > 2 * maps.len(), "{} files for {firsts:?}", maps.len());
    }
}
