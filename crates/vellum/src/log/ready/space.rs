//! Making space ready before it may be reserved: segments, blocks, zeros. All of it happens under
//! the prepare lock.
//!
//! **Ready**: space below `ready_end` is in segments that exist and, where the log fills by
//! mapping, holds written zeros, or is that of a long record. Space between there and
//! `allocated_end` is in segments that exist.
//!
//! **If the process dies here**: see `segment::prepare`.

use std::sync::atomic::Ordering;

use crate::format::control::Geometry;
use crate::format::frame::HEADER_LEN;
use crate::log::layout::limits;
use crate::log::ready::{RoomMaker, stage};
use crate::log::state::core::Core;
use crate::log::state::writer::Writer;
use crate::log::state::{place, poison};
use crate::options::limits::CAPACITY_UNIT_BYTES;
use crate::segment::prepare::{Preparer, STEP_BYTES_MAX, STEP_BYTES_MIN};
use crate::segment::stage::Stage;
use crate::segment::zeroed_file::ZeroedFile;
use crate::shared::ends::CommitStat;
use crate::shared::tail_word;
use crate::{Lsn, Preallocate, Result, knowledge};

/// The space that is made ready where a frame may start; a page of any machine is as long, or
/// longer.
pub(crate) const PAGE_BYTES: u64 = 4096;

/// Where a reservation may lie that had to have room made for it.
pub(crate) struct Extent {
    /// It starts there at the latest.
    pub(crate) starts_by: Lsn,
    /// It ends there at the latest.
    pub(crate) limit: Lsn,
    /// How far it takes `ready_end` along, if that is beyond its own end.
    pub(crate) ready: u64,
}

impl Extent {
    /// Room up to `limit`.
    fn to(limit: u64) -> Extent {
        Extent { starts_by: Lsn::MAX, limit: Lsn::new(limit), ready: 0 }
    }
}

/// Up to where blocks are made ready in one go from `at` on: the more, the longer the file is.
fn step_end(core: &Core, at: u64) -> u64 {
    let step = (at % core.files.capacity() / 4).clamp(STEP_BYTES_MIN, STEP_BYTES_MAX);
    let segment_end = core.files.segment_end(Lsn::new(at)).get();
    (at + step).next_multiple_of(CAPACITY_UNIT_BYTES).min(segment_end)
}

/// How far to make ready in one go from `ready` on, for `end` to be ready in the end: a window or
/// more of it, within a segment.
fn ready_limit(core: &Core, ready: u64, end: u64) -> u64 {
    let segment_end = core.files.segment_end(Lsn::new(ready)).get();
    if !needs_zeros(core) {
        return segment_end;
    }
    let (window, missing) = (&core.ready.window, end.saturating_sub(ready));
    let bytes = window.bytes().max(missing.next_power_of_two().min(window.most()));
    let bytes = bytes.min(core.ready.pieces.window_max());
    // Windows are counted in the file, so that the page cache can take them in large folios.
    let header_len = core.files.geometry.layout.file_header_len();
    let offset = header_len + ready % core.files.capacity();
    let window_end = ready + bytes - offset % bytes;
    window_end.min(segment_end)
}

/// Whether a file that grows and continues at `start` will have no record behind `end`.
fn ends_file(core: &Core, start: Lsn, end: Lsn) -> bool {
    let limit = core.files.segment_of(start).get() + limits::limit_at(core, start);
    core.commits.stage.is_none() && end.get() >= limit
}

/// Whether segments get their blocks in steps.
pub(crate) fn goes_in_steps(core: &Core) -> bool {
    let Geometry { layout, preallocate, fill, .. } = core.files.geometry;
    knowledge::goes_in_steps(layout, preallocate, fill)
}

pub(crate) fn needs_zeros(core: &Core) -> bool {
    // A stage has no blocks before it is written, whatever its segment has.
    core.has_mapping()
        && (core.commits.stage.is_some() || core.files.geometry.preallocate != Preallocate::Zeros)
}

impl RoomMaker<'_> {
    /// Makes what was allocated ready for a reservation of `len` bytes that ends at `end`.
    pub(crate) fn extend_to(self, tail: Lsn, end: Lsn, len: u64, is_ready: bool) -> Result<Extent> {
        let words = self.prepare.writer.core.words();
        let at = end.get() - len;
        let needs_zeros = needs_zeros(self.prepare.writer.core);
        if self.prepare.writer.core.files.geometry.layout.ends_with_records() && at > tail.get() {
            // The skipped rest needs no zeros, and no process may store there: it is cut off.
            let ready = match (is_ready, needs_zeros) {
                (true, true) => self.write_zeros(at, end.get())?,
                (_, false) => self.allocate_from(at, end.get())?,
                // The next bytes may be stored through a mapping, and need zeros.
                (false, true) => self.allocate_for_writes(at, end.get()).map(|()| end.get())?,
            };
            return Ok(Extent { ready, ..Extent::to(words.allocated_end()) });
        }
        if let Some(stage) = &self.prepare.writer.core.commits.stage
            && !is_ready
            && needs_zeros
            && !self.prepare.writer.attachment.backs_off_at(tail)
        {
            stage::check_room(self.prepare.writer.core, end)?;
            return self.extend_unzeroed(stage, len);
        }
        // Where nothing needs zeros, allocated space is ready, and the lock is for segments. A
        // stage has blocks only where it is ready.
        if is_ready || !needs_zeros || self.prepare.writer.core.commits.stage.is_some() {
            stage::check_room(self.prepare.writer.core, end)?;
            self.make_ready_to(end)?;
            return Ok(Extent::to(self.prepare.writer.core.ready_end().get()));
        }
        if goes_in_steps(self.prepare.writer.core) {
            let at = self.prepare.writer.core.ready_end().max(tail).get();
            self.allocate_for_writes(at, end.get())?;
        }
        Ok(Extent::to(words.allocated_end()))
    }

    /// Gives blocks from `at` to `end` at least; returns up to where.
    fn allocate_from(self, mut at: u64, end: u64) -> Result<u64> {
        while at < end {
            at = self.allocate_step(at)?;
        }
        Ok(at)
    }

    /// Gives blocks from `at` to `end` to records that are written by system call. This process
    /// does not give blocks again that it has given already: the shared words do not record them.
    fn allocate_for_writes(self, at: u64, end: u64) -> Result<()> {
        let given = &self.prepare.writer.core.ready.blocks_end;
        let at = at.max(given.load(Ordering::Relaxed));
        if at < end {
            given.store(self.allocate_from(at, end)?, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Gives blocks for a step from `at` on; returns its end.
    fn allocate_step(self, at: u64) -> Result<u64> {
        let core = self.prepare.writer.core;
        let path = core.find_segment(core.files.segment_of(Lsn::new(at)))?;
        let allocate = |limit: u64| {
            core.preparer().allocate(&path, Lsn::new(at), Lsn::new(limit))?;
            Ok(limit)
        };
        let limit = step_end(core, at);
        // Where the disk is full, or the process at its limit, there may be room for less.
        allocate(limit)
            .or_else(|_| allocate((at + 1).next_multiple_of(CAPACITY_UNIT_BYTES).min(limit)))
    }

    /// Creates segments from `allocated` until `end` is allocated; all or none. Returns whether
    /// there is a new one.
    pub(crate) fn create_to(self, allocated: u64, end: Lsn) -> Result<bool> {
        let core = self.prepare.writer.core;
        let words = core.words();
        let mut next = allocated;
        if next < end.get() {
            // No files for a log that is gone: another one may have taken its place.
            place::require(core)?;
        }
        while next < end.get() {
            let preparer = Preparer { skips_zeros: self.skips_zeros(), ..core.preparer() };
            if let Err(error) = poison::heed_sync(core, preparer.create(Lsn::new(next))) {
                // A record longer than the disk has room for must not eat the room there is.
                self.unallocate(allocated, next);
                return Err(error);
            }
            next += core.files.capacity();
            words.count_segment();
        }
        if core.commits.stage.is_some() {
            words.commits.raise_named_end(next);
        }
        words.set_allocated_end(next);
        if next > allocated {
            let CommitStat { syncs, synced_bytes, .. } = words.commits.counts.counts();
            core.ready.groups.note(syncs, synced_bytes);
            self.prepare.writer.attachment.register();
        }
        Ok(next > allocated)
    }

    /// Whether writing zeros to the next segment would cost more than it saves, and no call wants
    /// them.
    fn skips_zeros(self) -> bool {
        let core = self.prepare.writer.core;
        let CommitStat { syncs, synced_bytes, .. } = core.words().commits.counts.counts();
        core.files.geometry.preallocate == Preallocate::Auto
            && core.ready.groups.are_long(syncs, synced_bytes)
    }

    /// Continues the file of the segment behind that of `wanted`, by a part for each part of that
    /// one: an append that made all of it at once would be as late as hundreds of commits. Logs
    /// that never come far have no such file.
    pub(crate) fn begin_next_segment(self, wanted: Lsn) -> Result<()> {
        let core = self.prepare.writer.core;
        let (capacity, end) = (core.files.capacity(), core.files.segment_end(wanted));
        let share = (wanted.get() % capacity).saturating_sub(capacity / 4);
        let is_there = core.words().allocated_end() > end.get();
        if share == 0 || is_there || self.skips_zeros() {
            return Ok(());
        }
        // It is whole when three quarters of the other one are in use.
        poison::heed_sync(core, core.preparer().begin(2 * share).map(drop))
    }

    /// Removes the segments from `allocated` to `end` again, the newest first: so a log without its
    /// control file has no gap. Returns whether all are gone.
    pub(crate) fn unallocate(self, allocated: u64, mut end: u64) -> bool {
        let mut is_gone = true;
        while end > allocated {
            end -= self.prepare.writer.core.files.capacity();
            is_gone &= self.prepare.writer.core.preparer().remove(Lsn::new(end)).is_ok();
        }
        is_gone
    }

    /// Makes allocated space ready up to `end` at least.
    pub(crate) fn make_ready_to(self, end: Lsn) -> Result<()> {
        let core = self.prepare.writer.core;
        let words = core.words();
        // A dead owner may have reserved beyond `ready_end` without taking it along; nothing
        // that is reserved may be zeroed.
        let tail = tail_word::tail(words);
        let mut ready = core.ready_end().max(tail).get();
        if ready < end.get() {
            core.ready.window.adapt(tail);
        }
        while ready < end.get() {
            if let Some(stage) = &core.commits.stage {
                self.make_stage_at(stage, ready)?;
            }
            let begin = ready;
            ready = match needs_zeros(core) {
                true => self.write_window(ready, end.get())?,
                false if goes_in_steps(core) => self.allocate_step(ready)?,
                false => ready_limit(core, ready, end.get()),
            };
            words.raise_ready_end(ready);
            self.prepare.wake_waiters();
            // Staged records are to be dropped, not written.
            if needs_zeros(core) && core.commits.stage.is_none() {
                core.ready.pace.spend(ready - begin);
            }
        }
        Ok(())
    }

    /// Writes zeros from `ready` to `end` at least; returns up to where.
    fn write_zeros(self, mut ready: u64, end: u64) -> Result<u64> {
        while ready < end {
            ready = self.write_window(ready, end)?;
        }
        Ok(ready)
    }

    /// Writes a window of zeros at `ready`, on the way to `end`; returns its end.
    fn write_window(self, ready: u64, end: u64) -> Result<u64> {
        self.write_zeros_to(ready, ready_limit(self.prepare.writer.core, ready, end))
    }

    /// Writes zeros from `ready` to `limit` in the same segment, or to less where there is no room
    /// for all; returns their end.
    pub(crate) fn write_zeros_to(self, ready: u64, limit: u64) -> Result<u64> {
        let core = self.prepare.writer.core;
        let file = self.file_to_zero(core.files.segment_of(Lsn::new(ready)))?;
        let write = |limit: u64| {
            let (begin, end) = (Lsn::new(ready), Lsn::new(limit));
            core.preparer().write_zeros(&file, begin, end)?;
            if ends_file(core, begin, end) {
                core.preparer().free_behind(&file, end);
            }
            Ok(limit)
        };
        // Where the disk is full, or the process at its limit, there may be room for less.
        write(limit)
            .or_else(|_| write((ready + 1).next_multiple_of(CAPACITY_UNIT_BYTES).min(limit)))
    }

    /// Where zeros for the segment at `first` go.
    fn file_to_zero(self, first: Lsn) -> Result<ZeroedFile> {
        let Writer { core, attachment } = self.prepare.writer;
        let open = attachment.open_segments().find(first);
        match (open, &core.commits.stage) {
            (Some(segment), _) => Ok(ZeroedFile::Open(segment)),
            (None, Some(stage)) => ZeroedFile::open(&core.files.dir, stage.path(first)),
            (None, None) => ZeroedFile::open(&core.files.dir, core.find_segment(first)?),
        }
    }

    /// Makes room in the stage for a long record of `len` bytes, which is written by system call:
    /// that gives it its pages, so zeros before it would cost as much again.
    ///
    /// Only where a frame may start is there a page before: a writer that cannot write the record
    /// pads it.
    pub(crate) fn extend_unzeroed(self, stage: &Stage, len: u64) -> Result<Extent> {
        let words = self.prepare.writer.core.words();
        let tail = tail_word::tail(words).get();
        let begin = self.prepare.writer.core.ready_end().get().max(tail);
        let is_in_page = begin >= tail + HEADER_LEN as u64
            && !begin.is_multiple_of(self.prepare.writer.core.files.capacity());
        let ready = if is_in_page { begin } else { self.make_page(stage, begin)? };
        // Others may continue in the ready space, up to its end.
        let limit = ready + limits::len_at(self.prepare.writer.core, Lsn::new(ready), len);
        let limit = Lsn::new(limit.min(words.allocated_end()));
        let mut next = self.prepare.writer.core.files.segment_end(Lsn::new(ready - 1));
        while next < limit {
            self.make_page(stage, next.get())?;
            next = self.prepare.writer.core.files.segment_end(next);
        }
        words.raise_ready_end(ready);
        Ok(Extent { starts_by: Lsn::new(ready - HEADER_LEN as u64), limit, ready: 0 })
    }

    /// Makes ready up to `end`, where a commit record is to be: only a little behind a long record,
    /// which may be followed by another.
    pub(crate) fn make_ready_for_record(self, end: Lsn) -> Result<()> {
        let core = self.prepare.writer.core;
        let words = core.words();
        let tail = tail_word::tail(words).get();
        let is_behind_long = needs_zeros(core) && core.ready_end().get() <= tail;
        let Some(stage) = core.commits.stage.as_ref().filter(|_| is_behind_long) else {
            return self.make_ready_to(end);
        };
        let mut ready = tail;
        while ready < end.get() {
            ready = self.make_page(stage, ready)?;
            words.raise_ready_end(ready);
        }
        Ok(())
    }

    /// Makes the page of `ready`, from there on; returns its end.
    fn make_page(self, stage: &Stage, ready: u64) -> Result<u64> {
        self.make_stage_at(stage, ready)?;
        // The header of a segment takes whole pages, so positions are as far into theirs as bytes.
        self.write_zeros_to(ready, (ready + 1).next_multiple_of(PAGE_BYTES))
    }
}
