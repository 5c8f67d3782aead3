//! Walking over the frames of a framed log.

use std::sync::Arc;

use crate::files::Files;
use crate::files::open_files::open_to_read;
use crate::files::view::View;
use crate::files::window::Window;
use crate::format::frame::{ALIGNMENT, HEADER_LEN, Header, Kind, frame_len};
use crate::lsn::Range;
use crate::segment::open::ReadSegment;
use crate::{ErrorKind, Lsn, Result};

/// The content of a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scan {
    /// A whole frame; `next` is where the following one starts. A batch is stepped into. An
    /// envelope is part of the payload.
    Frame {
        /// The kind of the frame.
        kind: Kind,
        /// Bytes of the payload.
        payload_len: u64,
        /// Where the next frame starts.
        next: Lsn,
    },
    /// Eight zero bytes: nothing was ever written here.
    Unwritten,
    /// Bytes that are no frame of this log at this position.
    Invalid(&'static str),
}

/// Looks at the frame at `lsn`, which must end by `limit`. The payload is then in the window.
pub fn look(files: &Files, window: &mut Window, lsn: Lsn, limit: Lsn) -> Result<Scan> {
    let head = window.fetch(lsn, HEADER_LEN as u64, limit)?;
    let Ok(head) = <[u8; HEADER_LEN]>::try_from(head) else {
        return Ok(Scan::Unwritten);
    };
    let header = Header::from_bytes(head);
    if header.is_unwritten() {
        return Ok(Scan::Unwritten);
    }
    let payload_len = u64::from(header.length);
    if lsn.get() + header.frame_len() > limit.get() {
        return Ok(Scan::Invalid("the frame reaches beyond the end of the log"));
    }
    let mut kind = files.codec.kind_by_header(lsn, header);
    if kind.is_none() {
        let frame = window.fetch(lsn, HEADER_LEN as u64 + payload_len, limit)?;
        let Some(payload) = frame.get(HEADER_LEN..).filter(|p| p.len() as u64 == payload_len)
        else {
            return Ok(Scan::Invalid("the file ends in the middle of the record"));
        };
        kind = files.codec.kind_by_payload(lsn, header, payload);
    }
    let Some(kind) = kind else {
        return Ok(Scan::Invalid("the record does not match its checksum"));
    };
    let is_record = matches!(kind, Kind::Record | Kind::Member);
    if is_record && payload_len < files.geometry.envelope_len() as u64 {
        return Ok(Scan::Invalid("the record is shorter than its envelope"));
    }
    let step = if kind == Kind::Batch { HEADER_LEN as u64 } else { frame_len(payload_len) };
    Ok(Scan::Frame { kind, payload_len, next: Lsn::new(lsn.get() + step) })
}

/// Looks at the frame at `lsn` without believing in any process: a batch is whole or nothing, and
/// its records count only inside of it. Used where there are no shared words.
pub fn look_whole(files: &Files, window: &mut Window, lsn: Lsn, limit: Lsn) -> Result<Scan> {
    match look(files, window, lsn, limit)? {
        Scan::Frame { kind: Kind::Member, .. } => {
            Ok(Scan::Invalid("the record belongs to a batch whose start is missing"))
        }
        Scan::Frame { kind: Kind::Batch, payload_len, next } => {
            let end = Lsn::new(next.get() + payload_len);
            let mut member = next;
            while member < end {
                match look(files, window, member, end)? {
                    Scan::Frame { kind: Kind::Member, next, .. } => member = next,
                    _ => return Ok(Scan::Invalid("the batch is not whole")),
                }
            }
            Ok(Scan::Frame { kind: Kind::Batch, payload_len, next: end })
        }
        found => Ok(found),
    }
}

/// Where the unbroken row of whole frames from `from` on ends. A range that a dead writer had
/// `reserved` counts as a frame.
pub fn end_of_row(
    files: &Files,
    window: &mut Window,
    from: Lsn,
    limit: Lsn,
    reserved: &[Range],
) -> Result<Lsn> {
    let mut lsn = from;
    while lsn < limit {
        let next = match end_of_reserved(reserved, lsn) {
            Some(end) => end,
            None => match look_whole(files, window, lsn, limit)? {
                Scan::Frame { next, .. } => next,
                _ => break,
            },
        };
        lsn = next;
    }
    Ok(lsn)
}

/// The end of the range among `reserved` that contains `lsn`.
pub fn end_of_reserved(reserved: &[Range], lsn: Lsn) -> Option<Lsn> {
    reserved.iter().find(|range| range.holds(lsn)).map(|range| range.end())
}

/// Payload bytes that a search may checksum before it looks at short records only. Garbage that
/// looks like a long record costs as much to refute as a real record to confirm.
const SEARCH_BUDGET_BYTES: u64 = 16 << 30;
/// A record that the search looks at even then.
const SHORT_LEN: u64 = 64 << 10;

/// How far no frame can start, because all bytes are zero or, read as lengths, lead too far.
/// `bytes` are at `at`.
fn frameless_len(bytes: &[u8], at: Lsn, limit: Lsn) -> u64 {
    let left = limit.get() - at.get();
    let is_frameless = |(index, word): (usize, &[u8; HEADER_LEN])| {
        let header = Header::from_bytes(*word);
        header.is_unwritten() || index as u64 * ALIGNMENT + header.frame_len() > left
    };
    let (words, _) = bytes.as_chunks::<HEADER_LEN>();
    words.iter().enumerate().take_while(|word| is_frameless(*word)).count() as u64 * ALIGNMENT
}

/// Where the zeros begin that a segment ends with: found once, for several looks while no process
/// writes.
#[derive(Default)]
pub struct Zeros(Option<(Lsn, Lsn)>);

impl Zeros {
    /// From where on only zeros follow in the segment of `at`, if that is known.
    pub fn known(&self, files: &Files, at: Lsn) -> Option<Lsn> {
        self.0.filter(|(first, _)| *first == files.segment_of(at)).map(|(_, zeros)| zeros)
    }

    /// From where on only zeros follow in the segment of `at`, from `at` on. Bytes that cannot be
    /// read count as written.
    pub fn after(&mut self, view: &dyn View, at: Lsn) -> Lsn {
        if let Some(zeros) = self.known(view.files(), at) {
            return zeros.max(at);
        }
        let end = view.files().segment_end(at);
        let zeros = end_before_zeros(view, at, end).unwrap_or(end);
        self.0 = Some((view.files().segment_of(at), zeros));
        zeros
    }
}

fn end_before_zeros(view: &dyn View, at: Lsn, end: Lsn) -> Result<Lsn> {
    let first = view.files().segment_of(at);
    let Some(begin) = view.staged_from().filter(|begin| *begin < end) else {
        return open_to_read(view, first)?.end_before_zeros(at, end);
    };
    let Files { dir, geometry, .. } = view.files();
    let staged = ReadSegment::open_staged(dir, geometry, first)?;
    let zeros = staged.end_before_zeros(at.max(begin), end)?;
    // The pages of a segment that has left the stage meanwhile may hold something else.
    Ok(if view.staged_from() == Some(begin) { zeros } else { end })
}

/// The first position behind `lsn` at which a whole frame of this log starts, before `limit`. Files
/// that are missing or damaged are passed over. One that cannot be read may hold frames: an error.
pub fn find_next(view: &Arc<impl View>, lsn: Lsn, limit: Lsn) -> Result<Option<Lsn>> {
    find_next_before(view, &mut Zeros::default(), lsn, limit)
}

/// As [`find_next`], with the zeros that are known.
pub(crate) fn find_next_before(
    view: &Arc<impl View>,
    zeros: &mut Zeros,
    lsn: Lsn,
    limit: Lsn,
) -> Result<Option<Lsn>> {
    let [mut headers, mut payloads] = [(), ()].map(|()| Window::new(Arc::clone(view)));
    let mut budget = SEARCH_BUDGET_BYTES;
    let mut next = lsn.get() + ALIGNMENT;
    while next < limit.get() {
        let at = Lsn::new(next);
        let header = match headers.fetch(at, HEADER_LEN as u64, limit) {
            Ok(header) => header.try_into().ok(),
            Err(error) if view.files().is_told_missing(&error) => {
                next = view.files().behind_missing(view.files().segment_of(at), limit).get();
                continue;
            }
            Err(error) if error.kind() == ErrorKind::Corrupt => None,
            Err(error) => return Err(error),
        };
        let Some(header) = header else {
            // The file is gone, or ends before the segment does: continue with the next.
            next = view.files().segment_end(at).get();
            continue;
        };
        let header = Header::from_bytes(header);
        if header.is_unwritten() && zeros.after(&**view, at) <= at {
            // Mostly nothing else comes in this segment.
            next = view.files().segment_end(at).get();
            continue;
        }
        let skipped = frameless_len(headers.held(at, limit), at, limit);
        if skipped > 0 {
            next += skipped;
            continue;
        }
        next += ALIGNMENT;
        let len = u64::from(header.length);
        if view.files().codec.kind_by_header(at, header).is_none() {
            if len > SHORT_LEN && budget < len {
                continue;
            }
            budget = budget.saturating_sub(len);
        }
        match look_whole(view.files(), &mut payloads, at, limit) {
            Ok(Scan::Frame { .. }) => return Ok(Some(at)),
            Err(error) if error.kind() != ErrorKind::Corrupt => return Err(error),
            _ => {}
        }
    }
    Ok(None)
}
