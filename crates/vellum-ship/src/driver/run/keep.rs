//! The loop of a shipper: tasks beside shipping, and beginning the next generation.

use std::sync::Arc;

use super::{Done, Shipping, Work};
use crate::decide::{Merger, Owner, Saved};
use crate::driver::rotate::{Rotate, rotate};
use crate::driver::state::State;
use crate::pool::CHUNK_BYTES;

impl Shipping {
    /// Begins the tasks beside shipping, while no process waits.
    pub(super) fn keep_next(&mut self) -> Option<Work> {
        if self.rotate != Rotate::Not || self.upkeep.is_working() {
            return None;
        }
        if let Some(retain) = self.keep.retain.filter(|_| self.state.is_retention_due()) {
            let work = self.upkeep.retain(&self.requests, self.owner.generation(), retain);
            return Some(Box::pin(async { Ok(Done::Kept(work.await?)) }));
        }
        let (shipped, wanted) = (self.owner.shipped().lsn, self.requests.shipper.wanted().get());
        let is_behind = self.durable.saturating_sub(shipped) >= CHUNK_BYTES as u64;
        let is_busy = is_behind || wanted.min(self.durable) > shipped;
        let work = self.upkeep.next(&self.requests, self.stored, is_busy)?;
        Some(Box::pin(async { Ok(Done::Kept(work.await?)) }))
    }

    /// When the time has come, the chunks in flight end, so that a generation can begin there.
    pub(super) fn plan_rotate(&mut self, is_stopping: bool) {
        let is_due = !self.keep.rotate.is_zero() && self.state.age() >= self.keep.rotate;
        let tip = self.owner.coming_start().filter(|tip| *tip > self.state.begin());
        let may_begin = tip.is_some_and(|tip| tip != self.not_here && self.begins_file(tip));
        match self.rotate {
            Rotate::Not if is_due && may_begin && !is_stopping => self.rotate = Rotate::Draining,
            Rotate::Draining if is_stopping => self.rotate = Rotate::Not,
            _ => {}
        }
    }

    /// A text log can be restored from where a file begins, others from where a record does.
    fn begins_file(&self, lsn: u64) -> bool {
        !self.requests.is_text || lsn.is_multiple_of(self.requests.segment_bytes)
    }

    /// Begins the next generation, now that nothing is in flight.
    pub(super) fn rotate_next(&mut self) -> Option<Work> {
        if self.rotate != Rotate::Draining || !self.owner.is_idle() {
            return None;
        }
        let saved = self.owner.saved();
        let at = saved.point.lsn;
        let is_told = self.told == Some(at) && self.stored == at;
        let is_whole = self.requests.is_text || self.requests.shipper.whole().get() == at;
        if !is_told || !is_whole {
            (self.rotate, self.not_here) = (Rotate::Not, at);
            return None;
        }
        self.rotate = Rotate::Rotating;
        let work = rotate(Arc::clone(&self.requests), self.state.clone(), saved);
        Some(Box::pin(async { Ok(Done::Rotated(Box::new(work.await?))) }))
    }

    /// Ships on in the next generation; in the old one, if it could not be ended.
    pub(super) fn go_on(&mut self, (state, saved): (State, Saved)) {
        let has_gaps = self.options.max_unshipped.is_some();
        self.owner = Owner::new(&saved, self.options.in_flight, has_gaps);
        self.set_durable(self.durable);
        self.requests.note(|figures| figures.generation = u64::from(saved.generation));
        self.upkeep.merge_with(merger(&state, &saved, self.requests.segment_bytes));
        (self.rotate, self.not_here) = (Rotate::Not, saved.point.lsn);
        self.state = state;
    }
}

/// Gathers chunks from where the last shipper has stopped; if that is not known, from here on.
pub(super) fn merger(state: &State, saved: &Saved, segment_bytes: u64) -> Merger {
    match state.merge() {
        Some(at) => Merger::resume(saved.generation, at, segment_bytes),
        None => Merger::amid(saved.generation, saved.point, segment_bytes),
    }
}
