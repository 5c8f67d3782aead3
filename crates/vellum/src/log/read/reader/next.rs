//! The next record.

use crate::format::envelope::Envelope;
use crate::format::frame::{HEADER_LEN, Kind, frame_len};
use crate::log::layout::framed::frames::{self, Found};
use crate::log::read::reader::{Place, Reader};
use crate::log::read::record::Record;
use crate::{Layout, Lsn, Result};

impl Reader {
    /// The next record, or `None` at the published end; later calls go on from there.
    ///
    /// # Errors
    ///
    /// [`Trimmed`](crate::ErrorKind::Trimmed) when the position has been trimmed away meanwhile,
    /// [`Corrupt`](crate::ErrorKind::Corrupt) for damage, with file and position, unless it is
    /// [skipped](Reader::skip_damage).
    ///
    /// # Cost
    ///
    /// One `pread` per 256 KiB, and a checksum of the record. A reader that keeps up with the
    /// writers of a mapped log, and whose log was opened for writing, makes no system call: it
    /// copies from a mapping.
    #[allow(clippy::should_implement_trait, reason = "an iterator cannot lend its items")]
    pub fn next(&mut self) -> Result<Option<Record<'_>>> {
        match self.locate()? {
            Some(place) => self.lend(place).map(Some),
            None => Ok(None),
        }
    }

    /// Where the next record is, and what follows it; passes it.
    pub(crate) fn next_place(&mut self) -> Result<Option<(Lsn, Lsn)>> {
        Ok(self.locate()?.map(|place| (place.lsn, place.next)))
    }

    /// Finds the next record and moves the position behind it.
    #[inline]
    pub(crate) fn locate(&mut self) -> Result<Option<Place>> {
        match self.core.geometry.layout {
            Layout::Framed => match self.next_held() {
                None => self.next_frame(),
                held => Ok(held),
            },
            Layout::Text => self.next_line(),
        }
    }

    /// The next record of a framed log, if it is in memory with nothing to pass over before: nearly
    /// always, and each instruction counts.
    #[inline]
    fn next_held(&mut self) -> Option<Place> {
        let (core, lsn) = (&*self.core, self.position);
        if self.is_at_stop() || !self.read_limit.holes.is_empty() {
            return None;
        }
        let held = self.window.held(lsn, self.read_limit.end);
        let payload_len = core.codec.payload_len(lsn, held)?;
        let envelope_len = core.geometry.envelope_len();
        let len = payload_len.checked_sub(envelope_len as u64)?;
        let next = Lsn::new(lsn.get() + frame_len(payload_len));
        self.position = next;
        Some(Place { lsn, next, header_len: HEADER_LEN + envelope_len, len })
    }

    /// The record at a place that was just found.
    #[inline]
    pub(crate) fn lend(&mut self, place: Place) -> Result<Record<'_>> {
        let Place { lsn, next, header_len, len } = place;
        self.last_len = header_len as u64 + len;
        let bytes = self.window.fetch(lsn, self.last_len, next)?;
        self.is_in_line = header_len == 0 && !bytes.ends_with(b"\n");
        let (head, payload) = bytes.split_at(header_len);
        let envelope = head.get(HEADER_LEN..).and_then(Envelope::of);
        Ok(Record { lsn, next_lsn: next, payload, envelope })
    }

    fn next_frame(&mut self) -> Result<Option<Place>> {
        while self.has_more()? {
            let lsn = self.position;
            match frames::look(&self.core, &mut self.window, lsn, self.read_limit.end) {
                Ok(Found::Frame { kind: Kind::Record | Kind::Member, payload_len, next }) => {
                    self.position = next;
                    let envelope_len = self.core.geometry.envelope_len();
                    let header_len = HEADER_LEN + envelope_len;
                    let len = payload_len - envelope_len as u64;
                    return Ok(Some(Place { lsn, next, header_len, len }));
                }
                Ok(Found::Frame { next, .. }) => self.position = next,
                Ok(Found::Unwritten) => self.pass(self.damage("no record starts here"))?,
                Ok(Found::Invalid(reason)) => self.pass(self.damage(reason))?,
                Err(error) => self.pass(error)?,
            }
        }
        Ok(None)
    }
}
