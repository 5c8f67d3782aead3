//! The segments that one process has open.

use std::sync::{Arc, PoisonError};

use crate::log::append::Appender;
use crate::log::layout::limits;
use crate::log::state::attachment::{Attachment, LocalSlot};
use crate::segment::file::Segment;
use crate::shared::tail_word::Range;
use crate::{Lsn, Result};

/// Text segments that a process keeps open, beside those that its appends are busy with: the
/// newest, and the one before it for late writers.
const ROTATED_SEGMENTS_MAX: u64 = 2;
/// Segments that a reservation has open before it is made.
const SEGMENTS_IN_HAND: usize = 4;

impl Attachment {
    /// Lets idle slots drop the segments that have gone from the list.
    fn forget_segments(&self, gone: &[Lsn]) {
        if gone.is_empty() {
            return;
        }
        for mut slot in self.slots.all_idle() {
            if slot.segment.as_ref().is_some_and(|segment| gone.contains(&segment.first)) {
                slot.forget_segment();
            }
        }
    }
}

impl Appender<'_> {
    /// The open segment that holds `lsn`.
    #[inline]
    pub(crate) fn segment(self, slot: &mut LocalSlot, lsn: Lsn) -> Result<&Segment> {
        if !slot.was_in_segment_of(self.writer.core.capacity(), lsn) || slot.segment.is_none() {
            self.change_segment(slot, lsn)?;
        }
        Ok(slot.segment.as_ref().expect("was just set"))
    }

    #[cold]
    fn change_segment(self, slot: &mut LocalSlot, lsn: Lsn) -> Result<()> {
        let first = self.writer.core.segment_of(lsn);
        let held = slot.held(first).map(Arc::clone);
        if held.is_none() {
            slot.opened = (Lsn::ZERO, Lsn::ZERO);
        }
        (slot.segment, slot.segment_first) = (None, Lsn::ZERO);
        slot.segment = Some(held.map_or_else(|| self.open_segment(first), Ok)?);
        slot.segment_first = first;
        Ok(())
    }

    /// Opens what filling `range` will need, before it is reserved: what this process is short of,
    /// it is to notice while it holds nobody up. A record over many segments opens the later ones
    /// as it comes to them.
    #[cold]
    pub(crate) fn open_range(self, slot: &mut LocalSlot, range: Range) -> Result<()> {
        slot.let_go();
        slot.opened = (Lsn::ZERO, Lsn::ZERO);
        let mut first = self.writer.core.segment_of(range.start);
        let mut more = Vec::new();
        while first < range.end() && more.len() < SEGMENTS_IN_HAND {
            let held = slot.held(first).map(Arc::clone);
            more.push(held.map_or_else(|| self.open_segment(first), Ok)?);
            first = self.writer.core.segment_end(first);
        }
        if !self.writer.core.has_mapping() {
            limits::check_size_limit(self.writer.core)?;
        }
        let end = self.writer.core.segment_end(Lsn::new(range.end().get() - 1));
        slot.opened = (self.writer.core.segment_of(range.start), end);
        if let [only] = &more[..] {
            (slot.segment, slot.segment_first) = (Some(Arc::clone(only)), only.first);
        } else {
            slot.more = more;
        }
        Ok(())
    }

    pub(crate) fn open_segment(self, first: Lsn) -> Result<Arc<Segment>> {
        let mut segments =
            self.writer.attachment.segments.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(segment) = segments.iter().find(|segment| segment.first == first) {
            return Ok(Arc::clone(segment));
        }
        let segment = Arc::new(self.writer.core.open_segment(first)?);
        segments.push(Arc::clone(&segment));
        self.forget_gone_of(&mut segments);
        // Closed text files are for others to remove or compress, which an open one resists.
        let most =
            if self.writer.core.geometry.layout.rotates() { ROTATED_SEGMENTS_MAX } else { 64 };
        let budget = (self.writer.core.ready.mapped_bytes_max / segment.mapped_len().max(1))
            .clamp(1, most) as usize;
        if segments.len() > budget {
            segments.sort_unstable_by_key(|segment| segment.first);
            let excess = segments.len() - budget;
            let oldest: Vec<_> = segments.drain(..excess).map(|segment| segment.first).collect();
            self.writer.attachment.forget_segments(&oldest);
        }
        Ok(segment)
    }

    /// Lets go of segments whose files were removed: as long as they are open, they take space.
    pub(crate) fn forget_gone(self) {
        self.forget_gone_of(
            &mut self.writer.attachment.segments.lock().unwrap_or_else(PoisonError::into_inner),
        );
    }

    fn forget_gone_of(self, segments: &mut Vec<Arc<Segment>>) {
        // What is durable has left the stage, whose memory it would hold on to.
        let begin = self.writer.core.stage_begin().unwrap_or(self.writer.core.begin());
        let is_gone = |first: Lsn| self.writer.core.segment_end(first) <= begin;
        let gone = segments.extract_if(.., |segment| is_gone(segment.first));
        let gone: Vec<_> = gone.map(|segment| segment.first).collect();
        self.writer.attachment.forget_segments(&gone);
    }
}
