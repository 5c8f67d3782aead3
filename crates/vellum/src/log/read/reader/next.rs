//! The next record.

use crate::files::frames::{self, Scan};
use crate::format::envelope::Envelope;
use crate::format::frame::{HEADER_LEN, Kind, frame_len};
use crate::log::read::reader::{Place, Reader};
use crate::record::Record;
use crate::{Layout, Lsn, Result};

impl Reader {
    /// The next record, or `None` at the published end; later calls continue there.
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
    // The compiler leaves it alone otherwise, which costs 30 instructions of 160.
    #[inline(always)]
    pub fn next(&mut self) -> Result<Option<Record<'_>>> {
        match self.next_in_row() {
            Some(place) => Ok(Some(record(place, self.window.from(place.lsn)))),
            None => self.next_slowly(),
        }
    }

    /// The same, where a look at more than the record's own bytes is needed.
    #[inline(never)]
    fn next_slowly(&mut self) -> Result<Option<Record<'_>>> {
        match self.locate_slowly()? {
            Some(place) => self.lend(place).map(Some),
            None => Ok(None),
        }
    }

    /// The positions of the next record and of the one behind it; passes it.
    pub(crate) fn next_place(&mut self) -> Result<Option<(Lsn, Lsn)>> {
        Ok(self.locate()?.map(|place| (place.lsn, place.next)))
    }

    /// Finds the next record and moves the position behind it.
    pub(crate) fn locate(&mut self) -> Result<Option<Place>> {
        match self.next_in_row() {
            None => self.locate_slowly(),
            place => Ok(place),
        }
    }

    #[inline]
    fn locate_slowly(&mut self) -> Result<Option<Place>> {
        match self.core.files.geometry.layout {
            Layout::Framed => self.next_frame(),
            _ => self.next_line(),
        }
    }

    /// The next record of a framed log, if it is in memory with nothing to pass over before: nearly
    /// always, and each instruction counts.
    #[inline(always)]
    fn next_in_row(&mut self) -> Option<Place> {
        let (core, lsn) = (&*self.core, self.position);
        let payload_len = core.files.codec.payload_len(lsn, self.window.row(lsn)?)?;
        let envelope_len = core.files.geometry.envelope_len();
        let len = payload_len.checked_sub(envelope_len as u64)?;
        let next = Lsn::new(lsn.get() + frame_len(payload_len));
        (self.position, self.last_len) = (next, HEADER_LEN as u64 + payload_len);
        Some(Place { lsn, next, header_len: HEADER_LEN + envelope_len, len })
    }

    /// Where the row of records ends that can be taken with no look at anything but their bytes.
    pub(super) fn row_end(&self) -> Lsn {
        let is_plain =
            self.core.files.geometry.layout.has_frames() && self.read_limit.holes.is_empty();
        if is_plain { self.read_limit.end.min(self.stop) } else { Lsn::ZERO }
    }

    /// The record at a place that was just found.
    #[inline]
    pub(crate) fn lend(&mut self, place: Place) -> Result<Record<'_>> {
        self.last_len = place.header_len as u64 + place.len;
        let bytes = self.window.fetch(place.lsn, self.last_len, place.next)?;
        self.is_in_line = place.header_len == 0 && !bytes.ends_with(b"\n");
        Ok(record(place, bytes))
    }

    fn next_frame(&mut self) -> Result<Option<Place>> {
        while self.has_more()? {
            let lsn = self.position;
            match frames::look(&self.core.files, &mut self.window, lsn, self.read_limit.end) {
                Ok(Scan::Frame { kind: Kind::Record | Kind::Member, payload_len, next }) => {
                    self.position = next;
                    self.window.set_row_end(self.row_end());
                    let envelope_len = self.core.files.geometry.envelope_len();
                    let header_len = HEADER_LEN + envelope_len;
                    let len = payload_len - envelope_len as u64;
                    return Ok(Some(Place { lsn, next, header_len, len }));
                }
                Ok(Scan::Frame { next, .. }) => self.position = next,
                Ok(Scan::Unwritten) => self.pass_damage(self.damage("no record starts here"))?,
                Ok(Scan::Invalid(reason)) => self.pass_damage(self.damage(reason))?,
                Err(error) => self.pass_damage(error)?,
            }
        }
        Ok(None)
    }
}

/// The record at `place`, where `bytes` begin; shorter where they end before.
#[inline]
fn record(place: Place, bytes: &[u8]) -> Record<'_> {
    let Place { lsn, next, header_len, len } = place;
    let (head, rest) = bytes.split_at(header_len);
    let payload = &rest[..rest.len().min(len as usize)];
    let envelope = head.get(HEADER_LEN..).and_then(Envelope::of);
    Record::new(lsn, next, payload, envelope)
}
