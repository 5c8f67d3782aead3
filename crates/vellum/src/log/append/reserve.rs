//! Reserving space at the tail, and having it made ready first.
//!
//! A reservation that does not fit in the rest of its segment starts at the next one; the skipped
//! rest is padded (framed) or cut off the file (text). So every segment starts with a record,
//! unless it continues one that is longer than a segment.
//!
//! **Ready** is the space that may be stored to (`space`). Records that are written by `pwrite`
//! anyway need no zeros: they are reserved beyond `ready_end` under the prepare lock, and take
//! `ready_end` along. In a stage they begin in a page that is ready, so that they can be padded.
//!
//! **In hand**: a writer opens the segments of a range before it reserves it (of a very long
//! record, the first ones). Only the owner can fill a range while it lives, so a failure after
//! reserving would block all others.
//!
//! **If the process dies here**: see `segment::prepare`; a reservation beyond `ready_end` whose
//! owner died before taking it along is noticed by the next holder of the lock, which continues
//! from the tail.
//!
//! **Text** logs continue in a new file where their policy says so (`text::rotate`), and are
//! allocated no further than records need, because a file gets its name then (`text::file_names`).
//!
//! **Staged** logs keep segments ready in steps: the file of the next one is made bit by bit while
//! records fill the one before, and gets its name and its stage a window before the first record.

use crate::log::append::{Append, Appender};
use crate::log::layout::text::TextSpace;
use crate::log::layout::{self, limits};
use crate::log::ready::{RoomMaker, space};
use crate::log::state::attachment::{AfterPublish, LocalSlot};
use crate::log::state::poison;
use crate::lsn::Range;
use crate::shared::tail_word::{self, Grant, Refused};
use crate::{Error, ErrorKind, Lsn, Result};

/// Segments that trimmed ones are turned into ahead of the one being written.
const SEGMENTS_AHEAD: u64 = 4;

/// Zeros of a segment that are written in one go while no append needs it yet.
const PIECE_BYTES: u64 = 2 << 20;

/// A reservation, and where in it the caller's bytes go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placement {
    pub(crate) grant: Grant,
    /// Behind what is skipped at the end of a segment.
    pub(crate) at: Lsn,
}

/// The outcome of reserving in the ready space.
pub(crate) enum Reserved {
    Granted(Grant),
    /// It would end here, beyond that.
    Beyond(Lsn),
}

/// A length that is refused wherever it would start: the caller has not opened what it would need
/// there.
const NOT_OPENED: u64 = u64::MAX >> 1;

impl Append<'_> {
    /// Makes segments exist beyond the one being written until there are `segments`; `made` counts
    /// along. Of a text log one file is kept ready, without a name.
    ///
    /// Segments that were made before an error are left: see
    /// [`prepare_all`](crate::log::ready::spare_segments::prepare_all).
    pub(crate) fn prepare(self, segments: u64, made: &mut u64) -> Result<()> {
        let writer = self.core.writer()?;
        let words = self.core.words();
        if self.core.files.geometry.layout.names_have_times() {
            let prepare = writer.lock_prepare()?;
            self.core.check_words()?;
            *made = u64::from(segments > 0 && TextSpace::of(&prepare).make_next()?);
            return Ok(());
        }
        let mut begun = 0;
        loop {
            // Piece by piece, so that writers that need the lock do not wait for all of it.
            let prepare = writer.lock_prepare()?;
            self.core.check_words()?;
            let wanted = segments.saturating_mul(self.core.files.capacity());
            let wanted =
                self.core.files.segment_end(tail_word::tail(words)).get().saturating_add(wanted);
            let allocated = words.allocated_end();
            if allocated >= wanted.min(Lsn::MAX.get() - self.core.files.capacity()) {
                return Ok(());
            }
            begun += PIECE_BYTES;
            if begun < self.core.files.capacity() {
                let has_work = poison::heed_sync(self.core, self.core.preparer().begin(begun));
                if has_work.is_ok_and(|has_work| has_work) {
                    continue;
                }
            }
            begun = 0;
            layout::allocate_to(&prepare, Lsn::new(allocated + 1), 0)?;
            *made += 1;
            if space::goes_in_steps(self.core) {
                // Segments that a caller prepares are made whole.
                let first = Lsn::new(allocated);
                self.core.preparer().allocate(
                    &self.core.find_segment(first)?,
                    first,
                    self.core.files.segment_end(first),
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
            let ahead = allocated.saturating_sub(self.core.files.segment_end(tail).get())
                / self.core.files.capacity();
            if ahead >= SEGMENTS_AHEAD || self.prepare(ahead + 1, &mut 0).is_err() {
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
        let capacity = core.files.capacity();
        let words = core.words();
        let segment_first = slot.segment_first.get();
        layout::before_reserve(writer);
        let len_at = |start: Lsn| {
            // Most appends stay in the segment of the last, which is open.
            let offset = start.get().wrapping_sub(segment_first);
            let limit = limits::limit_at(core, start);
            if offset < capacity && len <= limit && offset <= limit - len {
                return len;
            }
            NOT_OPENED
        };
        let ready_end = || core.ready_end();
        let reserved = tail_word::reserve(words, slot.index(), &slot.rivals, ready_end, len_at);
        let grant = match reserved {
            Ok(grant) => grant,
            Err(_) => self.reserve_further(slot, len, is_ready)?,
        };
        let end = grant.range.end();
        layout::look_ahead(writer, end, len, is_ready, &mut slot.after_publish);
        Ok(Placement { grant, at: Lsn::new(end.get() - len) })
    }

    /// Reserves where the segment written last is not enough: opens what is needed first.
    #[cold]
    fn reserve_further(self, slot: &mut LocalSlot, len: u64, is_ready: bool) -> Result<Grant> {
        let len_at = |start| limits::len_at(self.writer.core, start, len);
        loop {
            if let Reserved::Granted(grant) = self.reserve_ready(slot, len_at)? {
                return Ok(grant);
            }
            if let Some(grant) = self.reserve_beyond(slot, len, is_ready)? {
                return Ok(grant);
            }
        }
    }

    /// Reserves as many bytes as `len_at` says at the tail, if they end in the ready space; the
    /// segments for them are open then.
    pub(crate) fn reserve_ready(
        self,
        slot: &mut LocalSlot,
        len_at: impl Fn(Lsn) -> u64,
    ) -> Result<Reserved> {
        let core = self.writer.core;
        let words = core.words();
        loop {
            let start = tail_word::tail(words);
            let range = Range { start, len: len_at(start) };
            if range.end() > core.ready_end() {
                return Ok(Reserved::Beyond(range.end()));
            }
            let opened = match slot.has_opened(range) {
                true => Ok(()),
                false => self.open_range(slot, range),
            };
            let ready_end = || core.ready_end();
            if let Ok(grant) = self.reserve_opened(slot, ready_end, Lsn::MAX, &len_at) {
                return Ok(Reserved::Granted(grant));
            }
            // Unless other appends moved the tail meanwhile, and the segment has gone.
            if core.files.segment_of(start) == core.files.segment_of(tail_word::tail(words)) {
                opened?;
            }
        }
    }

    /// Reserves by `limit` what starts by `starts_by`, if what it needs is open.
    fn reserve_opened(
        self,
        slot: &LocalSlot,
        limit: impl Fn() -> Lsn,
        starts_by: Lsn,
        len_at: impl Fn(Lsn) -> u64,
    ) -> Result<Grant, Refused> {
        let len_opened = |start| {
            let range = Range { start, len: len_at(start) };
            if start <= starts_by && slot.has_opened(range) { range.len } else { NOT_OPENED }
        };
        let words = self.writer.core.words();
        tail_word::reserve(words, slot.index(), &slot.rivals, limit, len_opened)
    }

    /// Reserves what has to be made ready first; `None` if others have done that meanwhile.
    #[cold]
    fn reserve_beyond(
        self,
        slot: &mut LocalSlot,
        len: u64,
        is_ready: bool,
    ) -> Result<Option<Grant>> {
        let core = self.writer.core;
        let words = core.words();
        let len_at = |start| limits::len_at(core, start, len);
        let is_done = || {
            let start = tail_word::tail(words);
            Range { start, len: len_at(start) }.end() <= core.ready_end()
        };
        loop {
            let Some(prepare) = self.writer.lock_prepare_unless(is_done)? else { return Ok(None) };
            core.check_words()?;
            // The words that decide where a record goes do not change under the lock.
            let tail = tail_word::tail(words);
            let range = Range { start: tail, len: len_at(tail) };
            let end = range.end();
            if end > Lsn::MAX {
                let message = "the log has used up its 16 PiB of positions; start a new one";
                return Err(Error::new(ErrorKind::Exhausted, message).at_path(&core.files.dir));
            }
            slot.after_publish.has_new_segment |= layout::allocate_to(&prepare, end, len)?;
            let room = RoomMaker::of(&prepare).extend_to(tail, end, len, is_ready)?;
            let opened = self.open_range(slot, range);
            let (limit, starts_by) = (|| room.limit, room.starts_by);
            if let Ok(grant) = self.reserve_opened(slot, limit, starts_by, len_at) {
                let ready = room.ready.max(grant.range.end().get());
                words.raise_ready_end(ready);
                slot.after_publish.pause =
                    slot.after_publish.pause.max(prepare.writer.core.ready.pace.due());
                return Ok(Some(grant));
            }
            // Unless others have reserved what was made ready.
            if tail == tail_word::tail(words) {
                opened?;
            }
        }
    }

    /// Prepares what was noted, once the record is published: readers and commits wait for that.
    ///
    /// An error here comes again, and is reported, when the space is needed.
    #[cold]
    pub(crate) fn prepare_ahead(self, after: &mut AfterPublish) {
        let Some(space) = after.space.take() else { return };
        layout::prepare_ahead(self.writer, space, after);
    }

    /// Makes the first space ready where no segment is there for the next record. A log that has
    /// one is opened without writing: the space would be for nothing where a process only reads.
    pub(crate) fn prepare_first(self) {
        let words = self.writer.core.words();
        let tail = tail_word::tail(words);
        if tail.get() < words.allocated_end() {
            return;
        }
        // A process that opens a log looks after its files itself.
        let mut after = AfterPublish::default();
        layout::look_ahead(self.writer, tail, 0, self.writer.core.has_mapping(), &mut after);
        self.prepare_ahead(&mut after);
    }
}
