//! Preparing segments and zeros of a framed log before they are needed.

use crate::log::layout::framed::FrameWriter;
use crate::log::ready::{RoomMaker, stage};
use crate::log::state::attachment::{AfterPublish, Space};
use crate::shared::tail_word;
use crate::{Lsn, Result};

/// Records that space is kept ready for, where that is more than the prefault window.
const RECORDS_AHEAD: u64 = 256;
/// But no more than this.
const AHEAD_BYTES_MAX: u64 = 16 << 20;
impl FrameWriter<'_> {
    /// Up to where records of `len` bytes end that have nothing prepared: a window of zeros for
    /// records that are stored, the next segment for those that are written.
    #[inline]
    pub(crate) fn calm_end(self, len: u64, is_ready: bool) -> u64 {
        let prepared = self.writer.core.words().prepared_end(self.wants_zeros(is_ready));
        prepared.saturating_sub(self.ahead(len))
    }

    #[inline]
    fn wants_zeros(self, is_ready: bool) -> bool {
        let core = self.writer.core;
        is_ready || (core.commits.stage.is_some() && !core.has_mapping())
    }

    /// Bytes to have prepared ahead of records of `len` bytes: long ones use a window up before the
    /// next one is ready.
    #[inline]
    fn ahead(self, len: u64) -> u64 {
        self.writer.core.ready.prefault_bytes.max((len * RECORDS_AHEAD).min(AHEAD_BYTES_MAX))
    }

    /// Prepares what was noted.
    pub(crate) fn prepare_next(self, space: Space, after: &mut AfterPublish) {
        let core = self.writer.core;
        let Space { end, len, is_ready } = space;
        let (ahead, is_ready) = (self.ahead(len), self.wants_zeros(is_ready));
        let words = core.words();
        let is_helped = core.commits.stage.is_some() && self.writer.attachment.helpers.ask();
        let Some(prepare) = self.writer.try_lock_prepare() else { return };
        let allocated = words.allocated_end();
        // Others may have gone on meanwhile: what is wanted follows the tail, not `end`.
        let tail = tail_word::tail(words).max(end);
        let mut wanted = Lsn::new(tail.get() + ahead.min(core.capacity()));
        if is_helped && tail.get() + core.capacity() / 4 <= allocated {
            // A helper makes the next segment, and has time for it.
            wanted = wanted.min(Lsn::new(allocated));
        }
        if wanted > Lsn::MAX || self.writer.attachment.backs_off_at(tail) {
            return;
        }
        // The next append makes more, if this is not enough.
        let ready_end = core.ready_end().max(tail).get() + 2 * core.ready.prefault_bytes;
        let ready_end = wanted.min(Lsn::new(ready_end));
        let room = RoomMaker::of(&prepare);
        let prepared = core
            .check_words()
            .and_then(|()| room.create_to(allocated, wanted))
            .and_then(|_| stage::check_room(core, wanted))
            .and_then(|()| if is_ready { room.make_ready_to(ready_end) } else { Ok(()) });
        // Long records use segments up as fast as they can be made: who needs one makes it.
        if prepared.is_ok() && !is_helped && ahead < AHEAD_BYTES_MAX {
            let _ = room.begin_next_segment(wanted);
        }
        if prepared.is_err() {
            // A full disk is not asked again for every record.
            self.writer.attachment.back_off(Lsn::new(tail.get() + core.ready.prefault_bytes / 8));
        }
        after.has_rotated |= words.allocated_end() > allocated;
        after.pause = after.pause.max(core.ready.pace.due());
    }

    /// Gets on with the next segment for those who append: it is there when half of the one before
    /// is in use. Returns whether there is a new one.
    pub(crate) fn make_next_segment(self) -> Result<bool> {
        let core = self.writer.core;
        let prepare = self.writer.lock_prepare()?;
        core.check_words()?;
        let (room, capacity) = (RoomMaker::of(&prepare), core.capacity());
        let tail = tail_word::tail(core.words());
        room.begin_next_segment(Lsn::new(tail.get() + capacity / 4))?;
        if tail.get() % capacity < capacity / 2 {
            return Ok(false);
        }
        let next = Lsn::new(core.segment_end(tail).get() + 1);
        room.create_to(core.words().allocated_end(), next)
    }
}
