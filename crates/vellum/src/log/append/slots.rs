//! The slots of one process: a thread has one for the length of an append.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::log::append::Appender;
use crate::log::repair::pad;
use crate::log::repair::presence::Presence;
use crate::log::state::attachment::LocalSlot;
use crate::shared::exclusive::Taken;
use crate::shared::participants;
use crate::shared::words::SLOT_COUNT;
use crate::{Error, ErrorKind, Result};

/// Slots that processes keep once they have claimed them. The others are for those that find none
/// left there, each for one append: so that there is one for every process that can attach.
const KEPT_SLOTS: std::ops::Range<usize> = 0..SLOT_COUNT / 4 * 3;
const LENT_SLOTS: std::ops::Range<usize> = KEPT_SLOTS.end..SLOT_COUNT;
/// How often, and for how long, to wait for one of those: its holder is in the middle of an append.
const LENDING_TRIES: u32 = 200;
const LENDING_NAP: Duration = Duration::from_millis(5);

impl<'a> Appender<'a> {
    /// A slot for the calling thread, with nothing in flight in it.
    #[inline]
    pub(crate) fn take_slot(self) -> Result<Taken<'a, LocalSlot>> {
        let own = self.writer.attachment.slots.own().filter(|slot| slot.is_claimed);
        let mut slot = own.map_or_else(|| self.take_any_slot(), Ok)?;
        slot.short_room = 0;
        Ok(slot)
    }

    #[cold]
    fn take_any_slot(self) -> Result<Taken<'a, LocalSlot>> {
        let slots = &self.writer.attachment.slots;
        loop {
            for mut slot in slots.own().into_iter().chain(slots.shared()) {
                if slot.is_claimed || self.claim(&mut slot)? {
                    return Ok(slot);
                }
            }
            // Those of other threads, where there are no more to claim.
            if let Some(slot) = slots.idle().find(|slot| slot.is_claimed) {
                return Ok(slot);
            }
            // Every slot of this process is in the middle of an append.
            std::thread::yield_now();
        }
    }

    /// Claims a shared slot; false where this process has to do with those it has.
    fn claim(self, slot: &mut LocalSlot) -> Result<bool> {
        let words = self.writer.core.words();
        if self.writer.attachment.is_adrift.load(Ordering::SeqCst) {
            Presence::of(self.writer).come_back()?;
        }
        if participants::has_given_up_slots(words) {
            // Perhaps by this very thread: it reserves no more until that can be padded.
            pad::repair(self.writer)?;
        }
        let has_some = self.writer.attachment.claimed_count.load(Ordering::Relaxed) > 0;
        let index = match participants::claim_slot(words, self.writer.attachment.me(), KEPT_SLOTS) {
            None if has_some => return Ok(false),
            None => self.borrow_slot()?,
            Some(index) => index,
        };
        (slot.index, slot.is_claimed) = (index as u16, true);
        slot.is_lent = LENT_SLOTS.contains(&index);
        self.writer.attachment.claimed_count.fetch_add(1, Ordering::Relaxed);
        Ok(true)
    }

    /// Claims a slot for one append, where there are no more to keep.
    #[cold]
    fn borrow_slot(self) -> Result<usize> {
        let words = self.writer.core.words();
        for turn in 0..LENDING_TRIES {
            if turn > 0 {
                std::thread::sleep(LENDING_NAP);
                // Those of the dead can be had again.
                pad::repair(self.writer)?;
            }
            if let Some(index) =
                participants::claim_slot(words, self.writer.attachment.me(), LENT_SLOTS)
            {
                return Ok(index);
            }
        }
        let message = format!("all {SLOT_COUNT} slots for appends are in use");
        Err(Error::new(ErrorKind::TooManyParticipants, message)
            .at_path(&self.writer.core.files.dir))
    }

    /// Gives a slot back if it was lent, which holds nothing in flight. After an error it may stay
    /// with this process until its next append.
    #[inline]
    pub(crate) fn end_use(self, slot: &mut LocalSlot) {
        if slot.is_lent {
            self.writer.attachment.give_back(self.writer.core.words(), slot);
        }
    }

    /// Lets others pad what could be neither filled nor padded here; the next append claims another
    /// slot.
    pub(crate) fn give_up_slot(self, slot: &mut LocalSlot) {
        (slot.is_claimed, slot.is_lent, slot.short_room) = (false, false, 0);
        self.writer.attachment.claimed_count.fetch_sub(1, Ordering::Relaxed);
        participants::give_up_slot(self.writer.core.words(), slot.index());
    }
}
