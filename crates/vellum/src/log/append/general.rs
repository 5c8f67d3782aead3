//! Appending: reserve, fill, publish.

use std::io::IoSlice;
use std::sync::Arc;
use std::{mem, thread};

use crate::files::padding::{self, Reason};
use crate::format::envelope::ENVELOPE_LEN;
use crate::format::frame::{PAYLOAD_LEN_MAX, frame_len};
use crate::log::append::fill::{Filler, MAPPED_ALONE_MAX};
use crate::log::append::reserve::Placement;
use crate::log::append::{Append, Appender};
use crate::log::keep::retention;
use crate::log::layout::limits::SHORT_LEN_MAX;
use crate::log::layout::{self, limits};
use crate::log::state::attachment::{AfterPublish, LocalSlot};
use crate::log::state::{busy, place, poison, wakeup};
use crate::lsn::Range;
use crate::shared::event_count;
use crate::shared::tail_word;
use crate::sys::guard;
use crate::{Error, ErrorKind, Lsn, OnFull, Result};

const _: () = assert!(SHORT_LEN_MAX <= MAPPED_ALONE_MAX);

/// Text that is appended as one piece.
#[derive(Clone, Copy)]
pub(crate) struct Text<'a> {
    pub(crate) parts: &'a [&'a [u8]],
    /// Bytes of all parts.
    pub(crate) len: u64,
    /// How many records they are.
    pub(crate) records: u64,
}

impl Append<'_> {
    /// Appends text as it is.
    #[inline]
    pub(crate) fn append_bytes(self, text: Text<'_>) -> Result<Lsn> {
        let Text { parts, len, records } = text;
        self.append_with(records, len, |filler, at| filler.bytes(at, parts))
    }

    /// Appends one record of `len` bytes, given in parts, as a frame.
    #[inline]
    pub(crate) fn append_framed(self, parts: &[&[u8]], len: u64) -> Result<Lsn> {
        match self.core.files.geometry.has_envelope {
            true => self.append_in_envelope(parts, len),
            false => self.append_frame(parts, len),
        }
    }

    /// Appends one frame whose payload of `len` bytes is `parts`: a record, with its envelope if it
    /// has one.
    #[inline]
    pub(crate) fn append_frame(self, parts: &[&[u8]], len: u64) -> Result<Lsn> {
        let frame_len = frame_len(len);
        self.append_with(1, frame_len, |filler, at| filler.record(at, parts))
    }

    /// Appends one record of `len` bytes, given in parts, behind an envelope.
    fn append_in_envelope(self, parts: &[&[u8]], len: u64) -> Result<Lsn> {
        let frame_len = frame_len(len + ENVELOPE_LEN as u64);
        self.append_with(1, frame_len, |filler, at| {
            let envelope = filler.writer.envelope().to_bytes();
            match parts {
                [payload] => filler.record(at, &[&envelope, payload]),
                _ => {
                    let all: Vec<&[u8]> =
                        [&envelope[..]].into_iter().chain(parts.iter().copied()).collect();
                    filler.record(at, &all)
                }
            }
        })
    }

    /// Refuses what a frame's length field has no room for, with the envelope before it.
    pub(crate) fn check_record_len(self, len: u64) -> Result<()> {
        let max = PAYLOAD_LEN_MAX - self.core.files.geometry.envelope_len() as u64;
        if len <= max {
            return Ok(());
        }
        let message = format!("a record of {len} bytes is too long; it may have up to {max}");
        Err(Error::new(ErrorKind::RecordTooLarge, message))
    }

    /// Reserves `len` bytes for so many records, has `fill` put them there, and publishes.
    #[inline]
    pub(crate) fn append_with(
        self,
        records: u64,
        len: u64,
        fill: impl FnOnce(&mut Filler<'_>, Lsn) -> Result<()>,
    ) -> Result<Lsn> {
        let answer = self.append_in_slot(records, len, fill);
        if answer.is_err() {
            busy::step_back_if_lost(self.core);
        }
        answer
    }

    #[inline]
    fn append_in_slot(
        self,
        records: u64,
        len: u64,
        fill: impl FnOnce(&mut Filler<'_>, Lsn) -> Result<()>,
    ) -> Result<Lsn> {
        let writer = self.core.writer()?;
        let appender = Appender::of(writer);
        poison::check(self.core)?;
        let mut slot = appender.take_slot()?;
        let is_mapped = self.is_mapped(len, &slot);
        if !is_mapped && self.core.has_mapping() {
            limits::check_size_limit(self.core)?;
        }
        let lock = layout::write_in_order(writer);
        let reserved = match place::check_sometimes(self.core, &mut slot.place_check) {
            Ok(()) => appender.reserve(&mut slot, len, is_mapped),
            Err(error) => Err(error),
        };
        let reserved = match reserved {
            Err(error) if place::is_left_after(writer, &error) => {
                appender.reserve(&mut slot, len, is_mapped)
            }
            reserved => reserved,
        };
        let placement = match reserved {
            Ok(placement) => placement,
            Err(error) => return Err(appender.refused(&mut slot, error)),
        };
        // Before anything is put there: in words that are lost the place may be another's.
        self.core.check_region()?;
        layout::before_put(writer, lock.as_ref(), placement.grant);
        appender.fill_reserved(&mut slot, placement, is_mapped, fill)?;
        appender.publish_records(&mut slot, placement, records);
        self.core.check_region()?;
        slot.let_go();
        drop(lock);
        appender.after_publish(&mut slot);
        if len <= SHORT_LEN_MAX {
            appender.measure_short_room(&mut slot);
        }
        Ok(placement.at)
    }
}

impl Appender<'_> {
    /// Has `fill` put bytes where they were reserved; gives the reservation up where that fails.
    #[inline]
    pub(crate) fn fill_reserved(
        self,
        slot: &mut LocalSlot,
        placement: Placement,
        is_mapped: bool,
        fill: impl FnOnce(&mut Filler<'_>, Lsn) -> Result<()>,
    ) -> Result<()> {
        let mut filler = Filler { writer: self.writer, slot, is_mapped };
        let filled = filler.skip(placement).and_then(|()| fill(&mut filler, placement.at));
        if let Err(error) = filled {
            let range = placement.grant.range;
            // The next one finds out whether there is room before it reserves.
            let until = Lsn::new(range.end().get().saturating_add(range.len));
            self.writer.attachment.back_off(until);
            self.give_up(slot, range, Reason::Failed);
            return Err(error);
        }
        Ok(())
    }

    /// Counts the records of a filled reservation, and publishes it.
    #[inline]
    pub(crate) fn publish_records(self, slot: &mut LocalSlot, placed: Placement, records: u64) {
        let bytes = placed.grant.range.end().get() - placed.at.get();
        tail_word::count(self.writer.core.words(), slot.index(), records, bytes);
        self.publish(slot);
    }

    /// Makes a filled reservation visible and wakes its waiters.
    #[inline]
    pub(crate) fn publish(self, slot: &mut LocalSlot) {
        let core = self.writer.core;
        tail_word::publish(core.words(), slot.index());
        let is_registered = self.writer.attachment.slots.is_registered();
        if event_count::notify(&core.words().event_count, is_registered) {
            wakeup::wake_pollers(core);
        }
        self.end_use(slot);
    }

    /// Does the tasks of `slot` once its record is published: no process waits for them.
    #[inline]
    pub(crate) fn after_publish(self, slot: &mut LocalSlot) {
        if slot.after_publish.is_anything() {
            self.run_after_publish(&mut slot.after_publish);
        }
    }

    #[cold]
    pub(crate) fn run_after_publish(self, after: &mut AfterPublish) {
        let mut after = mem::take(after);
        self.prepare_ahead(&mut after);
        if after.has_new_segment {
            retention::tidy(self.writer);
        }
        if !after.pause.is_zero() {
            thread::sleep(after.pause);
        }
    }

    /// Finds out how far short records go without anything but their bytes. The slot has nothing to
    /// do any more.
    #[inline(never)]
    fn measure_short_room(self, slot: &mut LocalSlot) {
        let core = self.writer.core;
        let is_usual = core.has_mapping()
            && !core.files.geometry.has_envelope
            && core.choices.on_full != OnFull::Drop
            && slot.is_claimed
            && !slot.is_lent
            && !guard::has_losses();
        let Some(segment) = slot.segment.as_ref().filter(|_| is_usual) else { return };
        let limit = layout::prepared_limit(self.writer, SHORT_LEN_MAX, true);
        let ready = limit.min(segment.ready_end()).get().saturating_sub(slot.segment_first.get());
        slot.short_room = ready.min(core.files.capacity());
    }

    /// Ends the use of a slot that got no reservation; returns the error for the caller.
    #[cold]
    fn refused(self, slot: &mut LocalSlot, error: Error) -> Error {
        self.end_use(slot);
        place::explain(self.writer.core, error)
    }

    /// Pads a reservation that will not be filled; where even that fails, leaves it to a process
    /// that can.
    pub(crate) fn give_up(self, slot: &mut LocalSlot, range: Range, reason: Reason) {
        let open = |first| match slot.held(first) {
            Some(segment) => Ok(Arc::clone(segment)),
            None => self.writer.core.open_segment_briefly(first).map(Arc::new),
        };
        match padding::write_to(&self.writer.core.files, range, reason, open) {
            Ok(()) => self.publish(slot),
            Err(_) => self.give_up_slot(slot),
        }
        slot.let_go();
    }
}

/// Parts of a record as plain slices, without an allocation for the usual few.
pub(crate) fn with_slices<T>(parts: &[IoSlice<'_>], then: impl FnOnce(&[&[u8]]) -> T) -> T {
    const FEW: usize = 8;
    if parts.len() <= FEW {
        let mut slices: [&[u8]; FEW] = [&[]; FEW];
        for (slice, part) in slices.iter_mut().zip(parts) {
            *slice = part;
        }
        return then(&slices[..parts.len()]);
    }
    let slices: Vec<&[u8]> = parts.iter().map(|part| &**part).collect();
    then(&slices)
}
