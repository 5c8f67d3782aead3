//! A record that is written where it will stay, piece by piece.

use std::io;

use crate::files::Files;
use crate::files::padding::Reason;
use crate::format::frame::Check;
use crate::log::append::fill::Filler;
use crate::log::append::reserve::Placement;
use crate::log::append::{Append, Appender};
use crate::log::layout::limits;
use crate::log::state::attachment::LocalSlot;
use crate::log::state::core::Core;
use crate::log::state::writer::Writer;
use crate::log::state::{busy, place, poison};
use crate::lsn::Range;
use crate::segment::open::ReadSegment;
use crate::shared::exclusive::Taken;
use crate::{Error, ErrorKind, Lsn, Result};

/// Space at the tail that belongs to the caller until it is published or abandoned.
///
/// Made by [`Log::reserve`](crate::Log::reserve). Bytes are written through [`io::Write`] in order,
/// straight to where they will stay; those already written can be changed with
/// [`rewrite`](Reservation::rewrite). Then [`publish`](Reservation::publish) makes the record
/// visible. Dropping the reservation abandons it: the space is padded, and readers pass over it.
///
/// While it is held, nothing behind it becomes visible: keep it short.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let log = vellum::Options::events().open(dir.path().join("a.log"))?;
/// use std::io::Write;
///
/// let mut record = log.reserve(11)?;
/// record.write_all(b"header:")?;
/// record.write_all(b"body")?;
/// let lsn = record.publish()?; // from now on readers see it
/// # assert_eq!(log.read_at(lsn)?.payload, b"header:body");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a reservation that is dropped is abandoned"]
pub struct Reservation<'a> {
    writer: Writer<'a>,
    slot: Option<Taken<'a, LocalSlot>>,
    placement: Placement,
    /// Where the payload starts, its length, and how much of it has been written.
    payload_at: Lsn,
    len: u64,
    written: u64,
    /// The check of the written bytes, as long as none of them was rewritten.
    check: Option<Check>,
    /// The last byte of a line that others may take for whole once it is there (`pad`).
    last: Option<u8>,
    is_mapped: bool,
    pid: u32,
}

impl<'a> Reservation<'a> {
    pub(crate) fn new(core: &'a Core, len: usize) -> Result<Reservation<'a>> {
        let len = len as u64;
        Append::of(core).check_record_len(len)?;
        let envelope_len = core.files.geometry.envelope_len() as u64;
        let layout = core.files.geometry.layout;
        let total = layout.record_len(envelope_len + len);
        let header_len = layout.record_header_len() as u64 + envelope_len;
        if total == 0 {
            let message = "a record of a text log cannot be empty; reserve at least one byte";
            return Err(Error::new(ErrorKind::InvalidOption, message));
        }
        Append::of(core).tell_of_drops()?;
        let writer = core.writer()?;
        poison::check(core)?;
        place::check(core)?;
        if core.has_mapping() && total > core.files.capacity() {
            limits::check_size_limit(core)?;
        }
        let mut slot = Appender::of(writer).take_slot()?;
        // Of any length: the caller wants to write in place. Only records longer than a segment are
        // in no single mapping.
        let is_mapped = core.has_mapping() && total <= core.files.capacity();
        let placement = Appender::of(writer).reserve(&mut slot, total, is_mapped);
        let placement = placement.map_err(|error| place::explain(core, error))?;
        core.check_region()?;
        let payload_at = Lsn::new(placement.at.get() + header_len);
        let check = Some(core.files.codec.check(placement.at, (envelope_len + len) as u32));
        let pid = std::process::id();
        let slot = Some(slot);
        writer.attachment.reserved.add(placement.grant.range.start);
        let mut reservation = Reservation {
            writer,
            slot,
            placement,
            payload_at,
            len,
            written: 0,
            check,
            last: None,
            is_mapped,
            pid,
        };
        reservation.fill(|filler| filler.skip(placement))?;
        if core.files.geometry.has_envelope {
            reservation.put_envelope()?;
        }
        Ok(reservation)
    }

    /// Stores the envelope, with the time of the reservation.
    fn put_envelope(&mut self) -> Result<()> {
        let envelope = self.writer.envelope().to_bytes();
        if let Some(check) = &mut self.check {
            check.update(&envelope);
        }
        let at = self.body_at();
        self.fill(|filler| filler.bytes(at, &[&envelope]))
    }

    /// Where what the check covers begins: the envelope, or else the caller's bytes.
    fn body_at(&self) -> Lsn {
        Lsn::new(self.payload_at.get() - self.writer.core.files.geometry.envelope_len() as u64)
    }

    /// The position of the record.
    pub fn lsn(&self) -> Lsn {
        self.placement.at
    }

    /// Bytes still to be written.
    pub fn remaining(&self) -> usize {
        (self.len - self.written) as usize
    }

    /// Changes bytes that were written already, `offset` bytes from the start of the record.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OutOfRange`] for bytes that have not been written yet; otherwise as for
    /// writing to a file.
    pub fn rewrite(&mut self, offset: usize, bytes: &[u8]) -> Result<()> {
        let offset = offset as u64;
        if offset > self.written || bytes.len() as u64 > self.written - offset {
            let message = format!(
                "cannot rewrite {} bytes at {offset}: only {} have been written",
                bytes.len(),
                self.written
            );
            return Err(Error::new(ErrorKind::OutOfRange, message));
        }
        self.put(offset, bytes)?;
        self.check = None;
        Ok(())
    }

    /// Makes the record visible to readers of every process; returns its position.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Abandoned`] when fewer bytes were written than reserved; the space is padded.
    ///
    /// # Durability
    ///
    /// As for [`Log::append`](crate::Log::append).
    pub fn publish(mut self) -> Result<Lsn> {
        if self.written != self.len {
            let message = format!(
                "only {} of {} reserved bytes were written; the record has been abandoned",
                self.written, self.len
            );
            return Err(Error::new(ErrorKind::Abandoned, message).at_lsn(self.lsn()));
        }
        if self.writer.core.files.geometry.layout.has_frames() {
            let header = self.finish_check()?.finish().to_bytes();
            let at = self.placement.at;
            self.fill(|filler| filler.bytes(at, &[&header]))?;
        }
        if let Some(last) = self.last.take() {
            self.store(self.len - 1, &[last])?;
        }
        let mut slot = self.slot.take().expect("held until published");
        self.check_process()?;
        Appender::of(self.writer).publish_records(&mut slot, self.placement, 1);
        self.writer.core.check_region()?;
        slot.let_go();
        Appender::of(self.writer).after_publish(&mut slot);
        Ok(self.placement.at)
    }

    /// The check of the whole payload, read back where it was rewritten.
    fn finish_check(&self) -> Result<Check> {
        if let Some(check) = self.check {
            return Ok(check);
        }
        let mut lsn = self.body_at();
        let end = Range { start: self.payload_at, len: self.len }.end();
        let len = end.get() - lsn.get();
        let mut check = self.writer.core.files.codec.check(self.placement.at, len as u32);
        let mut bytes = vec![0; len.min(64 << 10) as usize];
        while lsn < end {
            let first = self.writer.core.files.segment_of(lsn);
            let segment = match &self.writer.core.commits.stage {
                Some(_) => {
                    let Files { dir, geometry, .. } = &self.writer.core.files;
                    ReadSegment::open_staged(dir, geometry, first)?
                }
                None => self.writer.core.open_to_read(first)?,
            };
            let limit = end.get().min(first.get() + self.writer.core.files.capacity());
            let count = bytes.len().min((limit - lsn.get()) as usize);
            segment.read(lsn, &mut bytes[..count])?;
            check.update(&bytes[..count]);
            lsn = Lsn::new(lsn.get() + count as u64);
        }
        Ok(check)
    }

    /// Stores bytes of the record, but for the last byte of a line that is written by system call.
    fn put(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        let is_last = offset + bytes.len() as u64 == self.len;
        if let Some((last, others)) =
            bytes.split_last().filter(|_| is_last && self.writer.core.files.writes_text())
        {
            self.last = Some(*last);
            return self.store(offset, others);
        }
        self.store(offset, bytes)
    }

    fn store(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() {
            // At the very end, `at` may lie in a segment that does not exist.
            return self.check_process();
        }
        let at = Lsn::new(self.payload_at.get() + offset);
        self.fill(|filler| filler.bytes(at, &[bytes]))
    }

    fn fill(&mut self, fill: impl FnOnce(&mut Filler<'_>) -> Result<()>) -> Result<()> {
        self.check_process()?;
        let slot = self.slot.as_deref_mut().expect("held until published");
        fill(&mut Filler { writer: self.writer, slot, is_mapped: self.is_mapped })
    }

    /// Refuses a forked child's copy: the reservation is the parent's.
    fn check_process(&self) -> Result<()> {
        if self.pid == std::process::id() {
            return Ok(());
        }
        let message = "the reservation belongs to the process that was forked; make another";
        Err(Error::new(ErrorKind::Abandoned, message).at_lsn(self.placement.at))
    }
}

impl io::Write for Reservation<'_> {
    /// Writes as much as there is room for; 0 when the reservation is full.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let bytes = &bytes[..bytes.len().min(self.remaining())];
        self.put(self.written, bytes)?;
        if let Some(check) = &mut self.check {
            check.update(bytes);
        }
        self.written += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        let (range, is_own) = (self.placement.grant.range, self.pid == std::process::id());
        if is_own {
            self.writer.attachment.reserved.remove(range.start);
        }
        if let Some(mut slot) = self.slot.take() {
            if is_own {
                Appender::of(self.writer).give_up(&mut slot, range, Reason::Abandoned);
            } else {
                // The flag of the parent's slot means nothing here.
                std::mem::forget(slot);
            }
        }
        busy::step_back_if_lost(self.writer.core);
    }
}

impl std::fmt::Debug for Reservation<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reservation")
            .field("lsn", &self.lsn())
            .field("len", &self.len)
            .field("written", &self.written)
            .finish_non_exhaustive()
    }
}
