//! Preparing segments and zeros of a framed log before they are needed.

use crate::log::layout::framed::FrameWriter;
use crate::log::layout::helped;
use crate::log::layout::limits::SHORT_LEN_MAX;
use crate::log::ready::{RoomMaker, space, stage};
use crate::log::state::attachment::{AfterPublish, Space};
use crate::shared::tail_word;
use crate::{Lsn, Result};

/// Long records that space is kept ready for, where that is more than a window.
const RECORDS_AHEAD: u64 = 256;
/// But no more than this.
const AHEAD_BYTES_MAX: u64 = 16 << 20;
/// After how many bytes of the log its next segment gets more zeros: twice as many.
const BEGUN_EVERY: u64 = 256 << 10;

impl FrameWriter<'_> {
    /// Up to where records of `len` bytes end that have nothing prepared: a window of zeros for
    /// records that are stored, the next segment for those that are written.
    #[inline]
    pub(crate) fn prepared_limit(self, len: u64, is_ready: bool) -> u64 {
        let core = self.writer.core;
        let wants_zeros = self.wants_zeros(is_ready);
        let prepared = core.words().prepared_end(wants_zeros);
        // A segment is begun earlier than a window before it is needed.
        let is_window = wants_zeros && space::needs_zeros(core);
        let ahead = if is_window { self.ahead(len) } else { self.files_ahead(len) };
        prepared.saturating_sub(ahead)
    }

    #[inline]
    fn wants_zeros(self, is_ready: bool) -> bool {
        let core = self.writer.core;
        is_ready || (core.commits.stage.is_some() && !core.has_mapping())
    }

    /// Bytes to have ready ahead of records of `len` bytes.
    #[inline]
    fn ahead(self, len: u64) -> u64 {
        let records = match self.writer.core.commits.stage {
            // Commits hold records up, and make more ready meanwhile.
            Some(_) => 2 * len,
            None => self.records_ahead(len),
        };
        self.writer.core.ready.window.bytes().max(records)
    }

    /// Bytes of several records of `len` bytes: long ones use a window up before the next one is
    /// ready.
    #[inline]
    fn records_ahead(self, len: u64) -> u64 {
        match self.writer.attachment.helpers.are_there() {
            // More than that is there in time.
            true => 2 * len,
            false if len > SHORT_LEN_MAX => (len * RECORDS_AHEAD).min(AHEAD_BYTES_MAX),
            false => 0,
        }
    }

    /// Bytes to have segments for ahead of records of `len` bytes.
    #[inline]
    fn files_ahead(self, len: u64) -> u64 {
        let core = self.writer.core;
        core.ready.window.most().max(self.records_ahead(len)).min(core.files.capacity())
    }

    /// Prepares what was noted.
    pub(crate) fn prepare_next(self, space: Space, after: &mut AfterPublish) {
        let core = self.writer.core;
        let Space { end, len, is_ready } = space;
        let is_ready = self.wants_zeros(is_ready);
        let words = core.words();
        let is_helped = self.writer.attachment.helpers.ask(helped::asks_next(core, end));
        if is_helped && end.get() + self.ahead(len) <= words.prepared_end(is_ready) {
            return;
        }
        let Some(prepare) = self.writer.try_lock_prepare() else { return };
        let allocated = words.allocated_end();
        // Other appends may have gone on meanwhile: the wanted space follows the tail, not `end`.
        let tail = tail_word::tail(words);
        core.ready.window.adapt(tail);
        let tail = tail.max(end);
        let ahead = self.ahead(len);
        let mut wanted = Lsn::new(tail.get() + self.files_ahead(len));
        let is_helped = is_helped && core.commits.stage.is_some();
        if is_helped && tail.get() + core.files.capacity() / 4 <= allocated {
            // A helper makes the next segment, and has time for it.
            wanted = wanted.min(Lsn::new(allocated));
        }
        if wanted > Lsn::MAX || self.writer.attachment.backs_off_at(tail) {
            return;
        }
        // The next append makes more, if this is not enough.
        let ready_end = core.ready_end().max(tail).get() + 2 * core.ready.window.most();
        let ready_end = wanted.min(Lsn::new(ready_end)).min(Lsn::new(tail.get() + ahead));
        let room = RoomMaker::of(&prepare);
        let prepared = core
            .check_words()
            .and_then(|()| room.create_to(allocated, wanted))
            .and_then(|_| stage::check_room(core, ready_end))
            .and_then(|()| if is_ready { room.make_ready_to(ready_end) } else { Ok(()) });
        // Long records use segments up as fast as they can be made: the append that needs one makes
        // it.
        let is_long = self.records_ahead(len) == AHEAD_BYTES_MAX;
        if prepared.is_ok() && !is_helped && !is_long && self.begins_at(wanted) {
            let _ = room.begin_next_segment(wanted);
        }
        if prepared.is_err() {
            // A full disk is not asked again for every record.
            self.writer.attachment.back_off(Lsn::new(tail.get() + core.ready.window.most() / 8));
        }
        after.has_new_segment |= words.allocated_end() > allocated;
        after.pause = after.pause.max(core.ready.pace.due());
    }

    /// Whether it is time to get on with the next segment: short windows do that once for several.
    fn begins_at(self, wanted: Lsn) -> bool {
        let window = self.writer.core.ready.window.bytes();
        wanted.get() % BEGUN_EVERY < window
    }

    /// Continues the next segment for appends: it is there when half of the one before is in use.
    /// Returns whether there is a new one.
    pub(crate) fn make_next_segment(self) -> Result<bool> {
        let core = self.writer.core;
        if core.commits.stage.is_none() {
            return Ok(false);
        }
        let prepare = self.writer.lock_prepare()?;
        core.check_words()?;
        let (room, capacity) = (RoomMaker::of(&prepare), core.files.capacity());
        let tail = tail_word::tail(core.words());
        room.begin_next_segment(Lsn::new(tail.get() + capacity / 4))?;
        if tail.get() % capacity < capacity / 2 {
            return Ok(false);
        }
        let next = Lsn::new(core.files.segment_end(tail).get() + 1);
        room.create_to(core.words().allocated_end(), next)
    }
}
