//! The usual append: a short record of a log that nothing is the matter with, in the segment of the
//! one before.
//!
//! The steps are those of every append (`general`). The conditions of this process alone were
//! checked by an append before, which has left a number in the local slot: up to there the bytes of
//! the segment are open, mapped and need no preparation. The number is 0 where the log or the slot
//! is not one for this, and after any other use of the slot. Words that other processes change are
//! read each time. Where anything is in the way, nothing is done, and the record takes the general
//! path.

use crate::format::frame::frame_len;
use crate::log::append::reserve::Placement;
use crate::log::append::{Append, Appender};
use crate::log::layout;
use crate::log::layout::limits::SHORT_LEN_MAX;
use crate::log::state::attachment::LocalSlot;
use crate::log::state::core::Core;
use crate::log::state::writer::Writer;
use crate::log::state::{place, wakeup};
use crate::lsn::Range;
use crate::shared::tail_word::{self, Grant, TailWord};
use crate::shared::words::Words;
use crate::shared::{commit, event_count};
use crate::sys::guard;
use crate::{Lsn, Result};

impl Append<'_> {
    /// Appends one record, if it is a usual one; `None` where it is not, and nothing was done.
    #[inline]
    pub(crate) fn append_short<const IS_FRAMED: bool>(self, record: &[u8]) -> Option<Result<Lsn>> {
        let Append { core } = self;
        let words = core.words();
        let writer = Writer { core, attachment: core.writer.as_ref()?.attachment.at_hand()? };
        let mut slot = writer.attachment.slots.own_registered()?;
        let (len, room) = (record.len() as u64, slot.short_room);
        let is_short = (1..=SHORT_LEN_MAX).contains(&len);
        let len = if IS_FRAMED { frame_len(len) } else { len };
        let is_usual = is_short
            && len <= room
            && !commit::is_poisoned(&words.commits)
            && (IS_FRAMED || !words.full.has_untold());
        if !is_usual || place::check_sometimes(core, &mut slot.place_check).is_err() {
            return None;
        }
        let rule = &words.files.rule;
        if !IS_FRAMED && rule.period().is_some() {
            layout::before_reserve(writer);
        }
        let mut seen = tail_word::load(words);
        if !fits::<IS_FRAMED>(words, &slot, seen.tail(), len) {
            return None;
        }
        let index = slot.index();
        if let Err(winner) = tail_word::attempt(words, index, seen, len) {
            seen = reserve_contended::<IS_FRAMED>(words, &slot, len, winner)?;
        }
        let at = seen.tail();
        if !put_short::<IS_FRAMED>(core, &slot, at, record) {
            let appender = Appender::of(writer);
            return Some(appender.put_long_way::<IS_FRAMED>(&mut slot, seen, len, record));
        }
        tail_word::count(words, index, 1, len);
        tail_word::publish(words, index);
        if event_count::notify(&words.event_count, true) {
            wakeup::wake_pollers(core);
        }
        if guard::has_losses() {
            return Some(core.check_region().map(|()| at));
        }
        drop(slot);
        Some(Ok(at))
    }
}

/// Whether a record of `len` bytes that starts at `at` needs nothing but its bytes.
#[inline(always)]
fn fits<const IS_FRAMED: bool>(words: &Words, slot: &LocalSlot, at: Lsn, len: u64) -> bool {
    let (offset, room) = (at.get().wrapping_sub(slot.segment_first.get()), slot.short_room);
    offset <= room - len
        && at.get() + len <= tail_word::ready_end(words).get()
        && (IS_FRAMED || offset + len <= words.files.rule.room_at(at, room))
}

/// Reserves after others were faster, at the tail word that is returned. `None` where the record
/// does not fit behind theirs.
#[cold]
fn reserve_contended<const IS_FRAMED: bool>(
    words: &Words,
    slot: &LocalSlot,
    len: u64,
    mut winner: TailWord,
) -> Option<TailWord> {
    loop {
        let seen = tail_word::give_way(words, slot.index(), &slot.rivals, winner);
        if !fits::<IS_FRAMED>(words, slot, seen.tail(), len) {
            return None;
        }
        match tail_word::attempt(words, slot.index(), seen, len) {
            Ok(_) => return Some(seen),
            Err(now) => winner = now,
        }
    }
}

/// Puts a record at `at`, which is in the segment at hand. False if anything is wrong with the
/// mapping, or may be.
#[inline(always)]
fn put_short<const IS_FRAMED: bool>(core: &Core, slot: &LocalSlot, at: Lsn, record: &[u8]) -> bool {
    // First, so that little is to be kept while the checksum is made.
    let header = IS_FRAMED.then(|| core.files.codec.record_of(at, record).to_bytes());
    let Some((segment, map)) = slot.segment.as_ref().and_then(|segment| segment.with_map()) else {
        return false;
    };
    // In words that are lost the place may be another's.
    if guard::has_losses() {
        return false;
    }
    let offset = segment.offset_of(at) as usize;
    match header {
        Some(header) => map.write_headed(offset, &header, record),
        None => map.write(offset, record),
    }
    !guard::has_losses()
}

impl Appender<'_> {
    /// Puts a record where storage has failed somewhere, and publishes it.
    #[cold]
    fn put_long_way<const IS_FRAMED: bool>(
        self,
        slot: &mut LocalSlot,
        seen: TailWord,
        len: u64,
        record: &[u8],
    ) -> Result<Lsn> {
        let core = self.writer.core;
        let grant = Grant { range: Range { start: seen.tail(), len }, before: seen.slot() };
        let placement = Placement { grant, at: grant.range.start };
        slot.short_room = 0;
        core.check_region()?;
        self.fill_reserved(slot, placement, true, |filler, at| {
            let segment = self.segment(filler.slot, at)?;
            segment.check_len(segment.offset_of(at), grant.range.len as usize)?;
            match IS_FRAMED {
                true => filler.record(at, &[record]),
                false => filler.bytes(at, &[record]),
            }
        })?;
        self.publish_records(slot, placement, 1);
        core.check_region().map(|()| placement.at)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::log::open::enter;
    use crate::{OnFull, Options, Tuning};

    fn open(dir: &tempfile::TempDir, options: &Options) -> Core {
        let log = enter::open(&dir.path().join("log"), options).unwrap();
        // A staged log registers when a segment was made.
        log.attachment().unwrap().register();
        // The first opens the segment, the next maps more than it needs, and with each the zeros
        // ahead of a text log become twice as many.
        (0..12).for_each(|_| _ = Append::of(&log).append_record(b"before").unwrap());
        log
    }

    fn is_usual(log: &Core, record: &[u8]) -> bool {
        let append = Append::of(log);
        match log.files.geometry.layout.rotates() {
            false => append.append_short::<true>(record),
            true => append.append_short::<false>(record),
        }
        .is_some_and(|answer| answer.is_ok())
    }

    fn each_kind(check: impl Fn(&tempfile::TempDir, &Options)) {
        for options in [Options::mapped_text(), Options::events(), Options::wal()] {
            check(&tempfile::tempdir().unwrap(), &options);
        }
    }

    #[test]
    fn records_behind_others_are_usual_unless_they_are_empty_or_long() {
        each_kind(|dir, options| {
            let log = open(dir, options);
            for len in [1, 2, 3, 7, 8, 9, 16, 17, 300, 4000] {
                assert!(is_usual(&log, &vec![b'x'; len]), "{len} bytes");
            }
            assert!(!is_usual(&log, b"") && !is_usual(&log, &[b'x'; 4097]));
            let tail = tail_word::tail(log.words());
            assert_eq!(tail_word::published(log.words()), tail, "nothing is in flight");
        });
    }

    #[test]
    fn nothing_is_usual_where_a_record_may_be_refused_or_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let drops = Tuning::new().on_full(OnFull::Drop);
        assert!(!is_usual(&open(&dir, &Options::mapped_text().tuning(drops)), b"x"));
        each_kind(|dir, options| {
            let log = open(dir, options);
            log.words().full.count_drop();
            assert_eq!(is_usual(&log, b"x"), !log.files.geometry.layout.rotates());
        });
        each_kind(|dir, options| {
            let log = open(dir, options);
            let failure = commit::Failure {
                errno: 5,
                segment: Lsn::ZERO,
                operation: commit::Operation::Beside,
            };
            commit::poison_beside(&log.words().commits, failure);
            assert!(!is_usual(&log, b"x"));
        });
    }

    #[test]
    fn who_takes_the_slot_or_its_segment_ends_what_is_known_of_them() {
        each_kind(|dir, options| {
            let log = open(dir, options);
            let writer = log.writer().unwrap();
            let slot = Appender::of(writer).take_slot().unwrap();
            assert!(!is_usual(&log, b"x"), "it is in use");
            drop(slot);
            assert!(!is_usual(&log, b"x"), "what became of it is not known");
            Append::of(&log).append_record(b"after").unwrap();
            assert!(is_usual(&log, b"x"));
            writer.attachment.empty_slots(log.words());
            assert!(!is_usual(&log, b"x"), "the shared slot is somebody else's");
        });
    }

    #[test]
    fn what_does_not_fit_in_the_file_is_not_usual() {
        let dir = tempfile::tempdir().unwrap();
        let log = open(&dir, &Options::mapped_text());
        let rule = &log.words().files.rule;
        rule.set_limit(Some(12 * 6 + 2));
        assert!(!is_usual(&log, b"abc") && is_usual(&log, b"ab"), "two bytes are left");
        rule.set_limit(None);
        assert!(is_usual(&log, b"abc"));
        rule.leave(log.files.segment_end(tail_word::tail(log.words())));
        assert!(!is_usual(&log, b"abc"));
    }
}
