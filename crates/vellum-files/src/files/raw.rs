//! Reading the bytes of the log as they are on its device, before the durable end.
//!
//! Frames are verified on the way, so that a bad disk does not become a bad backup.

use std::ops::Range;
use std::sync::Arc;

use crate::files::frames::{self, Scan};
use crate::files::view::View;
use crate::files::window::Window;
use crate::files::{open_files, starts};
use crate::format::frame::{HEADER_LEN, Header, Kind, frame_len};
use crate::segment::listing::Listing;
use crate::{Error, ErrorKind, Layout, Lsn, Result};

/// A record longer than this is verified piece by piece.
const LONG: u64 = 1 << 20;
/// How large such a piece is.
const STEP: u64 = 256 << 10;

/// Bytes of the log as they are on its device
/// ([`Shipper::read`](../../vellum/ship/struct.Shipper.html#method.read)). Space that is skipped
/// between two records is zeros here, behind its header.
///
/// They are the first `len` of the buffer, and have the positions from the one that was read from.
/// The positions behind them, up to `next`, hold nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Piece {
    /// How many bytes were read.
    pub len: usize,
    /// Where the next piece starts. Behind the end of the segment, the start of the next one.
    pub next: Lsn,
    /// Whether a log that is restored up to `next` ends with a whole record.
    pub is_whole: bool,
    /// The segment that they are in. A piece is in one segment.
    pub segment: PieceSegment,
}

/// A segment of which a piece was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PieceSegment {
    /// Its first position.
    pub start: Lsn,
    /// End of its positions: start of the next one.
    pub end: Lsn,
    /// In a text log, the time in the name of its file, in seconds since 1970, where it has one.
    pub file_time: Option<u64>,
    /// In a text log, whether the file continues the one before it.
    pub is_continuation: bool,
    /// In a text log, whether the file is gone: positions up to `next` are lost.
    pub is_lost: bool,
}

/// The state of a reader: its position, and how far frames are verified.
pub struct Raw {
    view: Arc<dyn View>,
    window: Window,
    /// Where the last piece ended.
    at: Lsn,
    /// Everything before this is verified; a frame ends here, behind `at` or at it.
    verified: Lsn,
    /// End of the batch that `verified` is in, or something before.
    batch_end: Lsn,
    /// The last padding before `verified`, behind its header. No reader needs its bytes, and a
    /// commit does not write them: they may be different in the stage, and the file may end in
    /// them.
    padding: Range<Lsn>,
}

impl Raw {
    /// Reads the log that `view` shows.
    pub fn new(view: Arc<impl View>) -> Raw {
        let window = Window::new(Arc::clone(&view)).leave_no_trace();
        let padding = Lsn::ZERO..Lsn::ZERO;
        Raw { view, window, at: Lsn::ZERO, verified: Lsn::ZERO, batch_end: Lsn::ZERO, padding }
    }

    /// Reads one piece from `from` on, of a log that is `durable` up to there.
    pub fn read(&mut self, from: Lsn, buf: &mut [u8], durable: Lsn) -> Result<Piece> {
        if from > durable {
            let message = format!("{from} cannot be shipped: the log is durable up to {durable}");
            return Err(self.error(ErrorKind::OutOfRange, message, from));
        }
        let read = match self.view.files().geometry.layout {
            Layout::Framed => self.frames(from, buf, durable),
            Layout::Text => self.text(from, buf, durable),
        };
        // Files can go under a reader whose log holds nothing back for it.
        let begin = first_kept(&*self.view);
        if from < begin {
            let message =
                format!("{from} was removed before it was shipped: the log begins at {begin}");
            return Err(self.error(ErrorKind::Trimmed, message, from));
        }
        read
    }

    fn frames(&mut self, from: Lsn, buf: &mut [u8], durable: Lsn) -> Result<Piece> {
        let segment = self.segment(from);
        let room = Lsn::new(from.get().saturating_add(buf.len() as u64));
        let limit = room.min(durable).min(segment.end);
        if from != self.at || from < first_kept(&*self.view) {
            self.go_to(from, durable)?;
        }
        let (end, is_whole) = self.verify(from, limit, durable, buf)?;
        let len = (end.get() - from.get()) as usize;
        self.at = end;
        Ok(Piece { len, next: end, is_whole, segment })
    }

    /// Verifies frames up to `limit` at least, and copies each while the window has it; returns
    /// where the last whole record or batch ends before that, and that it does; or `limit`, where
    /// none ends.
    fn verify(
        &mut self,
        from: Lsn,
        limit: Lsn,
        durable: Lsn,
        buf: &mut [u8],
    ) -> Result<(Lsn, bool)> {
        let (mut whole, mut copied) = (None, from);
        loop {
            let known = self.verified.clamp(copied, limit);
            self.copy(copied, known, &mut buf[(copied.get() - from.get()) as usize..])?;
            copied = known;
            let is_end = self.verified > from && self.verified >= self.batch_end;
            if is_end && self.verified <= limit {
                whole = Some(self.verified);
            }
            if self.verified >= limit {
                return Ok(whole.map_or((limit, false), |end| (end, true)));
            }
            self.verify_next(durable)?;
        }
    }

    /// Verifies the frame at `verified`; steps into a batch.
    fn verify_next(&mut self, durable: Lsn) -> Result<()> {
        let lsn = self.verified;
        match self.look(lsn, durable)? {
            Scan::Frame { kind, payload_len, next } => {
                match kind {
                    Kind::Batch => self.batch_end = Lsn::new(next.get() + payload_len),
                    Kind::Pad => self.padding = Lsn::new(lsn.get() + HEADER_LEN as u64)..next,
                    _ => {}
                }
                self.verified = next;
                Ok(())
            }
            Scan::Unwritten => Err(self.damage(lsn, "nothing was written here")),
            Scan::Invalid(reason) => Err(self.damage(lsn, reason)),
        }
    }

    /// Finds the frame that `from` is in.
    fn go_to(&mut self, from: Lsn, durable: Lsn) -> Result<()> {
        self.window.forget();
        (self.verified, self.batch_end) = (from, Lsn::ZERO);
        if from >= durable || matches!(self.look(from, durable)?, Scan::Frame { .. }) {
            return Ok(());
        }
        let (files, begin) = (self.view.files(), self.view.begin());
        self.verified = starts::start_before(files, &mut self.window, begin, from, durable)?;
        while self.verified < from {
            self.verify_next(durable)?;
        }
        Ok(())
    }

    /// Looks at the frame at `lsn`; a long record does not have to fit into memory.
    fn look(&mut self, lsn: Lsn, limit: Lsn) -> Result<Scan> {
        let head = self.window.fetch(lsn, HEADER_LEN as u64, limit)?;
        let Ok(head) = <[u8; HEADER_LEN]>::try_from(head) else { return Ok(Scan::Unwritten) };
        let header = Header::from_bytes(head);
        let is_long = u64::from(header.length) > LONG
            && lsn.get() + header.frame_len() <= limit.get()
            && self.view.files().codec.kind_by_header(lsn, header).is_none();
        match is_long {
            true => self.look_at_long(lsn, header, limit),
            false => frames::look(self.view.files(), &mut self.window, lsn, limit),
        }
    }

    fn look_at_long(&mut self, lsn: Lsn, header: Header, limit: Lsn) -> Result<Scan> {
        let payload_len = u64::from(header.length);
        let mut check = self.view.files().codec.check(lsn, header.length);
        let mut done = 0;
        while done < payload_len {
            let at = Lsn::new(lsn.get() + HEADER_LEN as u64 + done);
            let bytes = self.window.fetch(at, STEP.min(payload_len - done), limit)?;
            if bytes.is_empty() {
                return Ok(Scan::Invalid("the file ends in the middle of the record"));
            }
            check.update(bytes);
            done += bytes.len() as u64;
        }
        let next = Lsn::new(lsn.get() + frame_len(payload_len));
        Ok(check.kind(header).map_or(
            Scan::Invalid("the record does not match its checksum"),
            |kind| Scan::Frame { kind, payload_len, next },
        ))
    }

    fn text(&mut self, from: Lsn, buf: &mut [u8], durable: Lsn) -> Result<Piece> {
        let mut segment = self.segment(from);
        let is_closed = durable >= segment.end;
        let Some(data_end) = self.data_end(&mut segment, durable)? else {
            return Ok(Piece { len: 0, next: segment.end, is_whole: true, segment });
        };
        let room = Lsn::new(from.get().saturating_add(buf.len() as u64));
        let limit = room.min(data_end).max(from);
        let mut len = self.copy(from, limit, buf)?;
        if limit < data_end {
            len = memchr::memrchr(b'\n', &buf[..len]).map_or(len, |at| at + 1);
        }
        let mut next = Lsn::new(from.get() + len as u64);
        if next >= data_end && is_closed {
            next = segment.end;
        }
        let is_whole = next == durable || next == segment.end && data_end < segment.end;
        Ok(Piece { len, next, is_whole, segment })
    }

    /// Where the text of a segment ends, as far as it is durable; `None` if its file is gone.
    fn data_end(&mut self, segment: &mut PieceSegment, durable: Lsn) -> Result<Option<Lsn>> {
        let listing = Listing::read(&self.view.files().dir)?;
        let Some(file) = listing.get(segment.start) else {
            segment.is_lost = true;
            return Ok((durable <= segment.start).then_some(durable));
        };
        (segment.file_time, segment.is_continuation) = (file.time, file.is_continuation);
        if durable < segment.end {
            return Ok(Some(durable));
        }
        let len = self.window.segment_data_len(segment.start)?;
        Ok(Some(Lsn::new(segment.start.get() + len)))
    }

    fn segment(&self, from: Lsn) -> PieceSegment {
        let (start, end) =
            (self.view.files().segment_of(from), self.view.files().segment_end(from));
        PieceSegment { start, end, file_time: None, is_continuation: false, is_lost: false }
    }

    /// Copies the bytes from `from` to `end` into `buf`.
    fn copy(&mut self, from: Lsn, end: Lsn, buf: &mut [u8]) -> Result<usize> {
        let len = (end.get() - from.get()) as usize;
        let mut done = 0;
        while done < len {
            let at = Lsn::new(from.get() + done as u64);
            if self.padding.contains(&at) {
                let count = (self.padding.end.min(end).get() - at.get()) as usize;
                buf[done..done + count].fill(0);
                done += count;
                continue;
            }
            let limit = if at < self.padding.start { end.min(self.padding.start) } else { end };
            let bytes = self.window.fetch(at, STEP.min(limit.get() - at.get()), limit)?;
            if bytes.is_empty() {
                return Err(self.damage(at, "the file ends before what is durable"));
            }
            buf[done..done + bytes.len()].copy_from_slice(bytes);
            done += bytes.len();
        }
        Ok(len)
    }

    fn damage(&self, lsn: Lsn, reason: &str) -> Error {
        let first = self.view.files().segment_of(lsn);
        let header_len = self.view.files().geometry.layout.file_header_len();
        let offset = header_len + (lsn.get() - first.get());
        let message = format!("{reason}: position {lsn}, byte {offset} of the file; not shipped");
        let path = open_files::segment_path(&*self.view, first);
        Error::new(ErrorKind::Corrupt, message).at_path(&path).at_lsn(lsn)
    }

    fn error(&self, kind: ErrorKind, message: String, lsn: Lsn) -> Error {
        Error::new(kind, message).at_path(&self.view.files().dir).at_lsn(lsn)
    }
}

/// The oldest position that can be shipped: where files have names of their own, the start of one.
pub fn first_kept(view: &dyn View) -> Lsn {
    match view.files().geometry.layout.names_have_times() {
        true => view.files().segment_of(view.begin()),
        false => view.begin(),
    }
}
