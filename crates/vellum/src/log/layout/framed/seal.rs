//! Seals: the frame at the end of each batch of a framed log, which tells recovery what was durable
//! before it.
//!
//! Who leads puts a seal at the tail and takes everything up to its end as the batch. Writers that
//! are in the middle of an append in front of it are waited for a short while, without the commit
//! lock. If they do not come to an end (one may be stopped), the batch ends with what is published,
//! and the seal with a later one: nobody puts another there before it is published. So between two
//! seals lie at most one batch and what was being appended when the second was put there.
//!
//! What recovery has to trust is what no seal vouches for yet: the last batch of each lane. A long
//! batch is therefore followed by a seal at once.
//!
//! **If the process dies here**: a seal in flight is padded like any record. One that is published
//! and not noted is one too many.

use std::time::{Duration, Instant};

use crate::format::seal::{SEAL_LEN, Seal};
use crate::log::append::fill::Filler;
use crate::log::append::reserve::{NOT_IN_HAND, Placement};
use crate::log::append::{Append, Appender};
use crate::log::commit::Commit;
use crate::log::commit::group::Leader;
use crate::log::layout::framed::Frames;
use crate::log::ready::RoomMaker;
use crate::log::repair::pad::Reason;
use crate::log::state::busy::Busy;
use crate::shared::commit::{self, Sealer};
use crate::shared::lock::Until;
use crate::shared::primitive::{self};
use crate::shared::tail_word::Range;
use crate::shared::{event_count, tail_word};
use crate::{Layout, Lsn, Result};

/// How long to sleep before asking whether those who write are alive: nobody rings for the dead.
pub(crate) const LOOK_FOR_THE_DEAD: Duration = Duration::from_millis(10);
/// How often to look for the writers in front of a seal before sleeping: most are done within
/// microseconds.
const SEAL_LOOKS: u32 = 64;
/// How long to sleep between looks at them then.
const SEAL_LOOK_AGAIN: Duration = Duration::from_micros(50);
/// How often to wait for as long as `LOOK_FOR_THE_DEAD` until a batch is written without a seal at
/// its end, because somebody does not go on.
const SEAL_PATIENCE: u32 = 3;
/// A batch of so many bytes is followed by a seal at once.
const LONG_BATCH_BYTES: u64 = 16 << 20;

/// For what somebody who commits still waits.
pub(crate) struct Patience {
    /// So many more times for the writers in front of a seal.
    left: u32,
    /// Whether there is room for a seal.
    is_sealing: bool,
    /// For everything.
    until: Until,
}

impl Patience {
    pub(crate) fn new(until: Until) -> Patience {
        Patience { left: SEAL_PATIENCE, is_sealing: true, until }
    }

    fn is_left(&self) -> bool {
        self.left > 0 && self.is_sealing
    }
}

/// What came of putting a seal at the tail.
enum Sealed {
    /// It ends here.
    To(Lsn),
    /// It would end here, beyond what is ready.
    Beyond(Lsn),
}

impl Frames<'_> {
    /// Puts a seal at `at`, and a pad from there to `end`.
    fn fill_seal(self, filler: &mut Filler<'_>, at: Lsn, end: Lsn) -> Result<()> {
        let commits = &self.core.words().commits;
        let seal = Seal {
            durable: commit::durable(commits),
            begin: self.core.begin(),
            checkpoint: commits.checkpoint(),
        };
        let seal = seal.to_frame(self.core.codec, at);
        let pad_at = Lsn::new(at.get() + SEAL_LEN);
        let pad = (end > pad_at)
            .then(|| self.core.codec.pad(pad_at, end.get() - pad_at.get()).to_bytes());
        let pad = pad.as_ref().map_or(&[][..], |pad| &pad[..]);
        filler.bytes(at, &[&seal, pad], self.core.has_mapping())
    }
}

impl<'a> Leader<'a> {
    /// Writes the next batch if it can be sealed now; otherwise does what it waits for.
    pub(crate) fn lead(self, end: Lsn, patience: &mut Patience) -> Result<()> {
        let (until, busy) = (patience.until, Busy::of(self.writer));
        let sealer = self.writer.sealer(until, &busy)?;
        // Somebody else may have been faster, which is as good.
        let Some(start) =
            sealer.next_start(self.writer.core.commits.block, self.writer.core.commits.lanes())
        else {
            return Ok(());
        };
        let published = tail_word::published(self.writer.core.words());
        if published <= start {
            drop(sealer);
            return self.wait_for_writers(end, Lsn::new(start.get() + 1), until);
        }
        let batch_end = match self.end_of_batch(&sealer, published, end, patience)? {
            Sealed::To(batch_end) => batch_end,
            Sealed::Beyond(room_end) => {
                drop(sealer);
                if self.make_room_for_seal(room_end, until).is_err() {
                    // A full disk is no reason to leave what is there unsynced.
                    patience.is_sealing = false;
                }
                return Ok(());
            }
        };
        let published = tail_word::published(self.writer.core.words());
        // A batch that ends before what is to be committed helps nobody who waits.
        let is_too_short = published < end;
        if batch_end > published && (is_too_short || patience.is_left()) {
            drop(sealer);
            if !is_too_short {
                patience.left = patience.left.saturating_sub(1);
            }
            return self.wait_for_seal(end, batch_end, until);
        }
        let batch_end = batch_end.min(published);
        let means = self.gather(start, batch_end)?;
        let Some(batch) = sealer.seal(start, batch_end) else { return Ok(()) };
        let kept = self.kept_while_writing(sealer, batch.end);
        self.write_batch(batch, &means, kept, until)?;
        if batch.end.get() - batch.start.get() >= LONG_BATCH_BYTES {
            // The batch itself is durable whatever comes of this.
            let _ = self.vouch(until);
        }
        Ok(())
    }

    /// Where the next batch is to end: behind a seal, which stands at the tail, or was put there
    /// before and waits for writers in front of it.
    fn end_of_batch(
        self,
        sealer: &Sealer<'a>,
        published: Lsn,
        end: Lsn,
        patience: &Patience,
    ) -> Result<Sealed> {
        let seal_end = sealer.seal_end();
        if self.writer.core.geometry.layout != Layout::Framed || !patience.is_sealing {
            return Ok(Sealed::To(published));
        }
        if seal_end > published || (seal_end >= end && sealer.is_to_come(seal_end)) {
            return Ok(Sealed::To(seal_end));
        }
        self.write_seal(sealer)
    }

    /// Puts a seal at the tail, if there is room for it in what is ready: at the start of the next
    /// segment where the tail's has not enough left. Up to a block boundary if others are on their
    /// way.
    fn write_seal(self, sealer: &Sealer<'a>) -> Result<Sealed> {
        let words = self.writer.core.words();
        let capacity = self.writer.core.capacity();
        let is_crowded = sealer.is_crowded();
        let seal_len = |offset: u64| match is_crowded {
            true => (offset + SEAL_LEN).next_multiple_of(self.writer.core.commits.block) - offset,
            false => SEAL_LEN,
        };
        let len_at = |start: Lsn| match start.get() % capacity {
            offset if offset + SEAL_LEN <= capacity => seal_len(offset),
            offset => capacity - offset + seal_len(0),
        };
        if !self.writer.core.has_mapping() {
            Append::of(self.writer.core).check_size_limit()?;
        }
        let mut slot = Appender::of(self.writer).take_slot()?;
        let range_at = |start| Range { start, len: len_at(start) };
        let grant = loop {
            let range = range_at(tail_word::tail(words));
            if range.end() > self.writer.core.ready_end() {
                Appender::of(self.writer).end_use(&mut slot);
                return Ok(Sealed::Beyond(range.end()));
            }
            if !slot.has_in_hand(range) {
                Appender::of(self.writer).take_in_hand(&mut slot, range)?;
            }
            let len_in_hand = |start| match range_at(start) {
                range if slot.has_in_hand(range) => range.len,
                _ => NOT_IN_HAND,
            };
            if let Ok(grant) =
                tail_word::reserve(words, slot.index, || self.writer.core.ready_end(), len_in_hand)
            {
                break grant;
            }
        };
        let range = grant.range;
        let is_skipped =
            self.writer.core.segment_end(range.start).get() < range.start.get() + SEAL_LEN;
        let at = if is_skipped { self.writer.core.segment_end(range.start) } else { range.start };
        let mut filler = Filler { writer: self.writer, slot: &mut slot };
        let filled = filler
            .skip(Placement { grant, at }, self.writer.core.has_mapping())
            .and_then(|()| Frames::of(self.writer.core).fill_seal(&mut filler, at, range.end()));
        if let Err(error) = filled {
            Appender::of(self.writer).give_up(&mut slot, range, Reason::Failed);
            return Err(error);
        }
        Appender::of(self.writer).publish(&mut slot);
        slot.let_go();
        sealer.note_seal(range.end());
        Ok(Sealed::To(range.end()))
    }

    /// Makes space ready up to `end`, where a seal is to stand.
    fn make_room_for_seal(self, end: Lsn, until: Until) -> Result<()> {
        let prepare = self.writer.lock_prepare_until(until)?;
        self.writer.core.check_words()?;
        RoomMaker::of(&prepare).allocate_to(end, 0)?;
        RoomMaker::of(&prepare).make_ready_for_seal(end)
    }

    /// Writes a seal behind a long batch at once, so that recovery never has to trust so much.
    fn vouch(self, until: Until) -> Result<()> {
        if self.writer.core.geometry.layout != Layout::Framed {
            return Ok(());
        }
        let busy = Busy::of(self.writer);
        let sealer = self.writer.sealer(until, &busy)?;
        // Whoever is on the way now writes one.
        let Some(start) =
            sealer.next_start(self.writer.core.commits.block, self.writer.core.commits.lanes())
        else {
            return Ok(());
        };
        if let Sealed::To(end) = self.write_seal(&sealer)?
            && end <= tail_word::published(self.writer.core.words())
        {
            let means = self.gather(start, end)?;
            if let Some(batch) = sealer.seal(start, end) {
                let kept = self.kept_while_writing(sealer, end);
                self.write_batch(batch, &means, kept, until)?;
            }
        }
        Ok(())
    }

    /// Makes everything durable, with a seal behind it that tells the newest state.
    pub(crate) fn seal_and_sync(self) -> Result<()> {
        if self.writer.core.geometry.layout != Layout::Framed {
            return Commit::of(self.writer.core).sync().map(drop);
        }
        let until = self.writer.core.deadline();
        loop {
            self.writer.core.check_poison()?;
            // The lock goes before anything is waited for.
            let busy = Busy::of(self.writer);
            let sealed = self.write_seal(&self.writer.sealer(until, &busy)?)?;
            drop(busy);
            match sealed {
                Sealed::To(end) => return Commit::of(self.writer.core).commit_until(end, until),
                Sealed::Beyond(end) => self.make_room_for_seal(end, until)?,
            }
        }
    }

    /// Waits until the seal that ends at `seal_end` is published, for a while.
    ///
    /// The event count stays unarmed: those who append without a pause would ring it for every
    /// record.
    fn wait_for_seal(self, end: Lsn, seal_end: Lsn, until: Until) -> Result<()> {
        let words = self.writer.core.words();
        let is_there = || {
            Commit::of(self.writer.core).is_sealed(end) || tail_word::published(words) >= seal_end
        };
        for _ in 0..SEAL_LOOKS {
            if is_there() {
                return Ok(());
            }
            (0..8).for_each(|_| primitive::spin_loop());
        }
        let since = Instant::now();
        while !is_there() {
            if since.elapsed() >= LOOK_FOR_THE_DEAD {
                return self.repair_what_holds_back(until);
            }
            event_count::wait(
                &words.event_count,
                event_count::listen(&words.event_count),
                SEAL_LOOK_AGAIN,
            );
        }
        Ok(())
    }
}
