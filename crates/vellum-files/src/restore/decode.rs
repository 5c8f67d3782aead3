//! Finding records in bytes that were shipped, where there is no log.

use crate::format::envelope::Envelope;
use crate::format::frame::{Codec, HEADER_LEN, Header, Kind, frame_len};
use crate::record::Record;
use crate::restore::shape::LogShape;
use crate::{Error, ErrorKind, Layout, Lsn, Result};

/// Takes the bytes of a log in their order, as
/// [`Shipper::read`](../../vellum/ship/struct.Shipper.html#method.read) gave them, and gives its
/// records, as a [`Reader`](../../vellum/struct.Reader.html) of that log would. It needs no log and
/// no file.
///
/// It holds the bytes that it was given and has not returned. Each record costs the checksum of its
/// bytes.
pub struct Decoder {
    codec: Codec,
    layout: Layout,
    /// Bytes of the envelope of each record; 0 in a log without.
    envelope_len: usize,
    /// Bytes from position `at` on begin at `done`.
    bytes: Vec<u8>,
    done: usize,
    at: Lsn,
    /// Positions before this are skipped: the rest of a pad.
    skip_to: Lsn,
}

impl Decoder {
    /// A decoder for the bytes of a log with this shape. The first ones begin where a record does,
    /// as every chunk does that is [whole](crate::files::raw::Piece::is_whole) before.
    pub fn new(shape: &LogShape) -> Decoder {
        let codec = Codec::new(shape.geometry.secret);
        let (layout, envelope_len) = (shape.layout(), shape.geometry.envelope_len());
        let (bytes, done, at) = (Vec::new(), 0, Lsn::ZERO);
        Decoder { codec, layout, envelope_len, bytes, done, at, skip_to: Lsn::ZERO }
    }

    /// Takes the bytes at `lsn`. Where they do not follow the last ones, something between is no
    /// record, as a gap or the end of a file of a text log; an incomplete record before it is
    /// dropped ([`rest`](Decoder::rest) returns it).
    pub fn push(&mut self, lsn: Lsn, bytes: &[u8]) {
        self.bytes.drain(..self.done);
        self.done = 0;
        if self.end() != lsn {
            self.bytes.clear();
            self.at = lsn;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole record; `None` where more bytes are needed.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](crate::ErrorKind::Corrupt) where the bytes are no record of this log at this
    /// position.
    #[allow(clippy::should_implement_trait)] // It lends its bytes.
    pub fn next(&mut self) -> Result<Option<Record<'_>>> {
        match self.layout {
            Layout::Framed => self.next_frame(),
            Layout::Text => Ok(self.next_line()),
        }
    }

    /// The rest of a text log: a last line without an end. Nothing of a framed log.
    pub fn rest(&mut self) -> Option<Record<'_>> {
        let len = self.left().len();
        (!self.layout.has_frames() && len > 0).then(|| self.take(0, len, len as u64))
    }

    fn end(&self) -> Lsn {
        Lsn::new(self.at.get() + self.left().len() as u64)
    }

    fn left(&self) -> &[u8] {
        &self.bytes[self.done..]
    }

    /// Returns a record that begins here, and goes behind it.
    fn take(&mut self, header_len: usize, len: usize, step: u64) -> Record<'_> {
        let lsn = self.at;
        let begin = self.done;
        self.pass(step);
        let (head, payload) = self.bytes[begin..begin + header_len + len].split_at(header_len);
        let envelope = head.get(HEADER_LEN..).and_then(Envelope::of);
        Record { lsn, next_lsn: self.at, payload, envelope }
    }

    /// Continues to the end of the bytes.
    fn pass(&mut self, step: u64) {
        let step = step.min(self.left().len() as u64);
        self.done += step as usize;
        self.at = Lsn::new(self.at.get() + step);
    }

    fn next_line(&mut self) -> Option<Record<'_>> {
        let len = memchr::memchr(b'\n', self.left())? + 1;
        Some(self.take(0, len, len as u64))
    }

    fn next_frame(&mut self) -> Result<Option<Record<'_>>> {
        loop {
            self.pass(self.skip_to.get().saturating_sub(self.at.get()));
            let Some((kind, payload_len)) = self.look()? else { return Ok(None) };
            let step = frame_len(payload_len);
            match kind {
                Kind::Record | Kind::Member => {
                    let len = (payload_len as usize).checked_sub(self.envelope_len);
                    let len =
                        len.ok_or_else(|| self.damaged("the record has no whole envelope"))?;
                    return Ok(Some(self.take(HEADER_LEN + self.envelope_len, len, step)));
                }
                // Its records follow; only whole batches are durable.
                Kind::Batch => self.pass(HEADER_LEN as u64),
                Kind::Pad | Kind::CommitRecord => self.skip_to = Lsn::new(self.at.get() + step),
            }
        }
    }

    /// The kind of the frame that begins here, and the length of its payload; `None` where not all
    /// of it is there.
    fn look(&self) -> Result<Option<(Kind, u64)>> {
        let Some(head) = self.left().first_chunk() else { return Ok(None) };
        let header = Header::from_bytes(*head);
        let payload_len = u64::from(header.length);
        if let Some(kind) = self.codec.kind_by_header(self.at, header) {
            return Ok(Some((kind, payload_len)));
        }
        if header.is_unwritten() {
            return Err(self.damaged("nothing was written here"));
        }
        if (self.left().len() as u64) < frame_len(payload_len) {
            return Ok(None);
        }
        let payload = &self.left()[HEADER_LEN..HEADER_LEN + payload_len as usize];
        let kind = self.codec.kind_by_payload(self.at, header, payload);
        let kind = kind.ok_or_else(|| self.damaged("the record does not match its checksum"));
        kind.map(|kind| Some((kind, payload_len)))
    }

    fn damaged(&self, what: &str) -> Error {
        Error::new(ErrorKind::Corrupt, what).at_lsn(self.at)
    }
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decoder").field("at", &self.at).finish_non_exhaustive()
    }
}
