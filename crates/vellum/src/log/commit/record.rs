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

use crate::format::seal::{SEAL_LEN, Seal};
use crate::log::append::Appender;
use crate::log::append::fill::Filler;
use crate::log::append::reserve::{Placement, Reserved};
use crate::log::commit::Leader;
use crate::log::layout::{self, limits};
use crate::log::ready::RoomMaker;
use crate::shared::commit::{self, Sealer};
use crate::shared::lock::Until;
use crate::{Lsn, Result};

/// What came of putting a seal at the tail.
pub(crate) enum Sealed {
    /// It ends here.
    To(Lsn),
    /// It would end here, beyond what is ready.
    Beyond(Lsn),
}

impl<'a> Leader<'a> {
    /// Puts a seal at the tail, if there is room for it in what is ready: at the start of the next
    /// segment where the tail's has not enough left. Up to a block boundary if others are on their
    /// way.
    pub(crate) fn write_seal(self, sealer: &Sealer<'a>) -> Result<Sealed> {
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
            limits::check_size_limit(self.writer.core)?;
        }
        let appender = Appender::of(self.writer);
        let mut slot = appender.take_slot()?;
        let grant = match appender.reserve_ready(&mut slot, len_at)? {
            Reserved::Granted(grant) => grant,
            Reserved::Beyond(end) => {
                appender.end_use(&mut slot);
                return Ok(Sealed::Beyond(end));
            }
        };
        let range = grant.range;
        let segment_end = self.writer.core.segment_end(range.start);
        let is_skipped = segment_end.get() < range.start.get() + SEAL_LEN;
        let at = if is_skipped { segment_end } else { range.start };
        let is_mapped = self.writer.core.has_mapping();
        appender.fill_reserved(&mut slot, Placement { grant, at }, is_mapped, |filler, at| {
            self.fill_seal(filler, at, range.end())
        })?;
        appender.publish(&mut slot);
        slot.let_go();
        sealer.note_seal(range.end());
        Ok(Sealed::To(range.end()))
    }

    /// Puts a seal at `at`, and a pad from there to `end`.
    fn fill_seal(self, filler: &mut Filler<'_>, at: Lsn, end: Lsn) -> Result<()> {
        let (core, commits) = (self.writer.core, &self.writer.core.words().commits);
        let seal = Seal {
            durable: commit::durable(commits),
            begin: core.begin(),
            checkpoint: commits.checkpoint(),
        };
        let seal = seal.to_frame(core.codec, at);
        let pad_at = Lsn::new(at.get() + SEAL_LEN);
        let pad =
            (end > pad_at).then(|| core.codec.pad(pad_at, end.get() - pad_at.get()).to_bytes());
        let pad = pad.as_ref().map_or(&[][..], |pad| &pad[..]);
        filler.bytes(at, &[&seal, pad], core.has_mapping())
    }

    /// Makes space ready up to `end`, where a seal is to stand.
    pub(crate) fn make_room_for_seal(self, end: Lsn, until: Until) -> Result<()> {
        let prepare = self.writer.lock_prepare_until(until)?;
        self.writer.core.check_words()?;
        layout::allocate_to(&prepare, end, 0)?;
        RoomMaker::of(&prepare).make_ready_for_seal(end)
    }
}
