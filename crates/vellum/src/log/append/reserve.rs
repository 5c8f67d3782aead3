//! Reserving space at the tail, and having it made ready first.
//!
//! A reservation that does not fit in the rest of its segment starts at the next one; what is
//! skipped is padded (framed) or cut off the file (text). So every segment starts with a record,
//! unless it continues one that is longer than a segment.
//!
//! **Ready** is what may be stored to (`space`). Records that are written by `pwrite` anyway need
//! no zeros: they are reserved beyond `ready_end` under the prepare lock, and take `ready_end`
//! along. In a stage they begin in a page that is ready, so that they can be padded.
//!
//! **In hand**: who reserves has open what filling takes, because nobody else can fill the range
//! while it lives. So a range that would lie in a segment that is not open is refused, the segment
//! opened, and the range reserved then.
//!
//! **If the process dies here**: see `segment::prepare`; a reservation beyond `ready_end` whose
//! owner died before taking it along is noticed by the next holder of the lock, which goes on from
//! the tail.
//!
//! **Text** logs go on in a new file where their policy says so (`text::rotate`), and are allocated
//! no further than records need, because a file gets its name then (`text::file_names`).
//!
//! **Staged** logs keep segments ready in steps: the file of the next one is made bit by bit while
//! records fill the one before, and gets its name and its stage a window before the first record.

use crate::log::append::{Append, Appender};
use crate::log::layout;
use crate::log::layout::text::TextSpace;
use crate::log::ready::RoomMaker;
use crate::log::state::attachment::{Later, LocalSlot, Space};
use crate::shared::tail_word::{self, Grant, Range, Refused};
use crate::{Error, ErrorKind, Layout, Lsn, Result};

/// Records that space is kept ready for, where that is more than the prefault window.
const RECORDS_AHEAD: u64 = 256;
/// But no more than this.
const AHEAD_BYTES_MAX: u64 = 16 << 20;
/// Segments that trimmed ones are turned into ahead of the one being written.
const SEGMENTS_AHEAD: u64 = 4;

/// A reservation, and where in it the caller's bytes go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placement {
    pub(crate) grant: Grant,
    /// Behind what is skipped at the end of a segment.
    pub(crate) at: Lsn,
}

/// Bytes that `len` bytes take from `offset` in a segment on, with what is skipped before them: no
/// record ends behind `limit` but one that starts the segment.
#[inline]
fn len_from(offset: u64, len: u64, capacity: u64, limit: u64) -> u64 {
    if offset == 0 || offset + len <= limit { len } else { capacity - offset + len }
}

/// A length that is refused wherever it would start: the caller has not opened what it would need
/// there.
pub(crate) const NOT_IN_HAND: u64 = u64::MAX >> 1;

impl Append<'_> {
    /// Reserves `len` bytes by `limit` that start by `starts_by`, if what they need is open.
    fn reserve_in_hand(
        self,
        slot: &LocalSlot,
        limit: impl Fn() -> Lsn,
        starts_by: Lsn,
        len: u64,
    ) -> Result<Grant, Refused> {
        let len_at = |start| {
            let range = Range { start, len: self.len_at(start, len) };
            if start <= starts_by && slot.has_in_hand(range) { range.len } else { NOT_IN_HAND }
        };
        tail_word::reserve(self.core.words(), slot.index, limit, len_at)
    }

    /// Bytes that a reservation of `len` takes at `start`.
    pub(crate) fn len_at(self, start: Lsn, len: u64) -> u64 {
        let capacity = self.core.capacity();
        let limit = layout::limit_at(self.core, start);
        len_from(start.get() % capacity, len, capacity, limit)
    }

    /// Makes segments exist beyond the one being written until there are `segments`; returns how
    /// many were made. Of a text log one file is kept ready, without a name.
    ///
    /// What was made before an error is left: see
    /// [`prepare_all`](crate::log::ready::prepared::prepare_all).
    pub(crate) fn prepare(self, segments: u64) -> Result<u64> {
        let mut made = 0;
        self.prepare_counting(segments, &mut made).map(|()| made)
    }

    /// The same, and `made` counts along.
    pub(crate) fn prepare_counting(self, segments: u64, made: &mut u64) -> Result<()> {
        let writer = self.core.writer()?;
        let words = self.core.words();
        if self.core.geometry.layout == Layout::Text {
            let prepare = writer.lock_prepare()?;
            self.core.check_words()?;
            *made = u64::from(segments > 0 && TextSpace::of(&prepare).make_next()?);
            return Ok(());
        }
        loop {
            // Segment by segment, so that writers who need the lock do not wait for all of them.
            let prepare = writer.lock_prepare()?;
            self.core.check_words()?;
            let wanted = segments.saturating_mul(self.core.capacity());
            let wanted = self.core.segment_end(tail_word::tail(words)).get().saturating_add(wanted);
            let allocated = words.allocated_end();
            if allocated >= wanted.min(Lsn::MAX.get() - self.core.capacity()) {
                return Ok(());
            }
            RoomMaker::of(&prepare).allocate_to(Lsn::new(allocated + 1), 0)?;
            *made += 1;
            if self.core.goes_in_steps() {
                // What is prepared on purpose is there whole.
                let first = Lsn::new(allocated);
                self.core.preparer().allocate(
                    &self.core.find_segment(first)?,
                    first,
                    self.core.segment_end(first),
                )?;
            }
        }
    }

    /// Makes trimmed segments ready for new records at once, so that no commit waits for that.
    pub(crate) fn use_spares_ahead(self) {
        let has_spare = || self.core.preparer().spare().is_ok_and(|spare| spare.is_some());
        let words = self.core.words();
        while self.core.commits.stage.is_some() && has_spare() {
            let tail = tail_word::tail(words);
            let allocated = words.allocated_end();
            let ahead =
                allocated.saturating_sub(self.core.segment_end(tail).get()) / self.core.capacity();
            if ahead >= SEGMENTS_AHEAD || self.prepare(ahead + 1).is_err() {
                return;
            }
        }
    }
}

impl Appender<'_> {
    /// Reserves `len` bytes, and has open what filling them needs. With `is_ready`, all of it may
    /// be stored to through a mapping.
    #[inline]
    pub(crate) fn reserve(
        self,
        slot: &mut LocalSlot,
        len: u64,
        is_ready: bool,
    ) -> Result<Placement> {
        let Appender { writer } = self;
        let core = writer.core;
        let capacity = core.capacity();
        let words = core.words();
        let segment_first = slot.segment_first.get();
        layout::before_reserve(writer);
        let len_at = |start: Lsn| {
            // Most appends stay in the segment of the last, which is open.
            let offset = start.get().wrapping_sub(segment_first);
            let limit = layout::limit_at(core, start);
            if offset < capacity && len <= limit && offset <= limit - len {
                return len;
            }
            NOT_IN_HAND
        };
        let grant = match tail_word::reserve(words, slot.index, || core.ready_end(), len_at) {
            Ok(grant) => grant,
            Err(_) => self.reserve_further(slot, len, is_ready)?,
        };
        let end = grant.range.end();
        layout::look_ahead(writer, end, len, is_ready, &mut slot.later);
        Ok(Placement { grant, at: Lsn::new(end.get() - len) })
    }

    /// Reserves where the segment written last is not enough: opens what is needed first.
    #[cold]
    fn reserve_further(self, slot: &mut LocalSlot, len: u64, is_ready: bool) -> Result<Grant> {
        let words = self.writer.core.words();
        loop {
            let start = tail_word::tail(words);
            let range = Range { start, len: Append::of(self.writer.core).len_at(start, len) };
            if range.end() > self.writer.core.ready_end() {
                match self.reserve_beyond(slot, len, is_ready)? {
                    Some(grant) => return Ok(grant),
                    None => continue,
                }
            }
            let opened = self.take_in_hand(slot, range);
            if let Ok(grant) = Append::of(self.writer.core).reserve_in_hand(
                slot,
                || self.writer.core.ready_end(),
                Lsn::MAX,
                len,
            ) {
                return Ok(grant);
            }
            // Unless others went on meanwhile, and what was to be opened has gone.
            if self.writer.core.segment_of(start)
                == self.writer.core.segment_of(tail_word::tail(words))
            {
                opened?;
            }
        }
    }

    /// Reserves what has to be made ready first; `None` if others have done that meanwhile.
    #[cold]
    fn reserve_beyond(
        self,
        slot: &mut LocalSlot,
        len: u64,
        is_ready: bool,
    ) -> Result<Option<Grant>> {
        let words = self.writer.core.words();
        let is_done = || {
            let start = tail_word::tail(words);
            Range { start, len: Append::of(self.writer.core).len_at(start, len) }.end()
                <= self.writer.core.ready_end()
        };
        loop {
            let Some(prepare) = self.writer.lock_prepare_unless(is_done)? else { return Ok(None) };
            self.writer.core.check_words()?;
            // What decides where a record goes does not change under the lock.
            let tail = tail_word::tail(words);
            let range = Range { start: tail, len: Append::of(self.writer.core).len_at(tail, len) };
            let end = range.end();
            if end > Lsn::MAX {
                let message = "the log has used up its 16 PiB of positions; start a new one";
                return Err(
                    Error::new(ErrorKind::Exhausted, message).at_path(&self.writer.core.dir)
                );
            }
            slot.later.has_rotated |= RoomMaker::of(&prepare).allocate_to(end, len)?;
            let room = RoomMaker::of(&prepare).make_room(tail, end, len, is_ready)?;
            let opened = self.take_in_hand(slot, range);
            if let Ok(grant) = Append::of(self.writer.core).reserve_in_hand(
                slot,
                || room.limit,
                room.starts_by,
                len,
            ) {
                let ready = room.ready.max(grant.range.end().get());
                words.raise_ready_end(ready);
                slot.later.pause = slot.later.pause.max(prepare.writer.core.ready.pace.due());
                return Ok(Some(grant));
            }
            // Unless others have reserved what was made ready.
            if tail == tail_word::tail(words) {
                opened?;
            }
        }
    }

    /// Notes that more is to be prepared before it is needed, if this append is the one to notice:
    /// a window of zeros for records that are stored, the next segment for those that are written.
    #[inline]
    pub(crate) fn look_ahead(self, end: Lsn, len: u64, is_ready: bool, later: &mut Later) {
        let words = self.writer.core.words();
        let is_ready = is_ready
            || (self.writer.core.commits.stage.is_some() && !self.writer.core.has_mapping());
        let ahead = words.ahead_of(end, is_ready);
        // Long records use a window up before the next one is ready: stay further ahead of them.
        let wanted =
            self.writer.core.ready.prefault_bytes.max((len * RECORDS_AHEAD).min(AHEAD_BYTES_MAX));
        if ahead < wanted && !words.prepare.is_held() {
            later.space = Some(Space { end, ahead: wanted, is_ready });
        }
    }

    /// Prepares what was noted, once the record is published: readers and commits wait for that.
    ///
    /// What goes wrong here goes wrong again, and is reported, when the space is needed.
    #[cold]
    pub(crate) fn prepare_ahead(self, later: &mut Later) {
        let Some(space) = later.space.take() else { return };
        layout::prepare_ahead(self.writer, space, later);
    }

    /// Makes the first space ready, so that the first record does not pay for it.
    pub(crate) fn prepare_first(self) {
        let tail = tail_word::tail(self.writer.core.words());
        // Who opens a log looks after its files itself.
        let mut later = Later::default();
        layout::look_ahead(self.writer, tail, 0, self.writer.core.has_mapping(), &mut later);
        self.prepare_ahead(&mut later);
    }

    pub(crate) fn prepare_next(self, space: Space, later: &mut Later) {
        let Space { end, ahead, is_ready } = space;
        let words = self.writer.core.words();
        let Some(prepare) = self.writer.try_lock_prepare() else { return };
        let allocated = words.allocated_end();
        // Others may have gone on meanwhile: what is wanted follows the tail, not `end`.
        let tail = tail_word::tail(words).max(end);
        let wanted = Lsn::new(tail.get() + ahead.min(self.writer.core.capacity()));
        if wanted > Lsn::MAX || self.writer.attachment.is_discouraged(tail) {
            return;
        }
        let prepared = self
            .writer
            .core
            .check_words()
            .and_then(|()| RoomMaker::of(&prepare).allocate_to(wanted, 0).map(drop));
        let prepared = prepared.and_then(|()| self.writer.core.check_stage_room(wanted));
        let prepared = prepared.and_then(|()| match is_ready {
            true => RoomMaker::of(&prepare).make_ready_to(wanted),
            false => Ok(()),
        });
        // Long records use segments up as fast as they can be made: who needs one makes it.
        if prepared.is_ok()
            && self.writer.core.commits.stage.is_some()
            && ahead == self.writer.core.ready.prefault_bytes
        {
            let _ = RoomMaker::of(&prepare).begin_next_segment(wanted);
        }
        if prepared.is_err() {
            // A full disk is not asked again for every record.
            self.writer
                .attachment
                .discourage(Lsn::new(tail.get() + self.writer.core.ready.prefault_bytes / 8));
        }
        later.has_rotated |= words.allocated_end() > allocated;
        later.pause = later.pause.max(prepare.writer.core.ready.pace.due());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_starts_at_the_next_segment() {
        let from = |offset, len| len_from(offset, len, 4096, 4096);
        assert_eq!(from(0, 4096), 4096);
        assert_eq!(from(96, 4000), 4000);
        assert_eq!(from(97, 4000), 3999 + 4000);
        assert_eq!(from(0, 10_000), 10_000, "longer than a segment, from its start");
        assert_eq!(from(1, 10_000), 4095 + 10_000);
        let from = |offset, len| len_from(offset, len, 4096, 1000);
        assert_eq!(from(900, 100), 100);
        assert_eq!(from(901, 100), 3195 + 100, "files are shorter than segments");
        assert_eq!(from(0, 2000), 2000, "but for a record that is longer itself");
        assert_eq!(len_from(1, 1, 4096, 0), 4095 + 1, "the segment was left");
        assert_eq!(len_from(0, 1, 4096, 0), 1, "there is nothing to leave");
    }
}
