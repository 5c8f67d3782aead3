//! The local log's bytes, as chunks.

use vellum::ship::Shipper;
use vellum::{ErrorKind, Lsn};

use super::ShipError;
use crate::object::{CHUNK_BYTES_MAX, FileMark, HEADER_BYTES, Hash, Link, hash};
use crate::pool::{Buffer, CHUNK_BYTES, Pool};

/// So many bytes are read at a time where a length is not known.
const READ_BYTES: u64 = 1 << 20;

/// Enough to see whether a file is there.
const LOOK_BYTES: usize = 64;

/// The next part of the local log.
pub(super) enum Cut {
    /// These bytes, behind room for a header.
    Chunk(Link, Buffer),
    /// Positions up to here are lost.
    Lost(u64),
    /// Nothing more is durable.
    Nothing,
}

/// A pool for so many chunks at a time.
pub(super) fn pool(chunks: usize) -> Pool {
    Pool::new(chunks, HEADER_BYTES + CHUNK_BYTES)
}

/// Reads the next chunk. Its frames are verified.
pub(super) fn cut(shipper: &Shipper, from: u64, mut buffer: Buffer) -> Result<Cut, ShipError> {
    let piece = match shipper.read(Lsn::new(from), &mut buffer.space()[HEADER_BYTES..]) {
        Err(error) if error.kind() == ErrorKind::Trimmed => {
            return Ok(Cut::Lost(shipper.begin().get()));
        }
        piece => piece?,
    };
    let next = piece.next.get();
    if next == from {
        return Ok(Cut::Nothing);
    }
    if piece.segment.is_lost {
        return Ok(Cut::Lost(next));
    }
    buffer.set_filled(HEADER_BYTES + piece.len);
    let content = hash(&buffer.as_ref()[HEADER_BYTES..]);
    Ok(Cut::Chunk(Link { start: from, end: next, file: mark(from, &piece), content }, buffer))
}

fn mark(from: u64, piece: &vellum::ship::Piece) -> Option<FileMark> {
    let segment = &piece.segment;
    let mark = FileMark { time: segment.file_time, is_continuation: segment.is_continuation };
    (segment.start.get() == from).then_some(mark)
}

/// The link of the local log at exactly these positions: their bytes, or a gap, if all of them are
/// lost. Nothing if a part is gone, or is cut elsewhere.
pub(super) fn link(shipper: &Shipper, start: u64, end: u64) -> Result<Option<Link>, ShipError> {
    bytes(shipper, start, end, &mut Vec::new())
}

/// As [`link`]; the bytes are appended to `out`.
pub(super) fn bytes(
    shipper: &Shipper,
    start: u64,
    end: u64,
    out: &mut Vec<u8>,
) -> Result<Option<Link>, ShipError> {
    let first = out.len();
    let (mut at, mut file) = (start, None);
    while at < end {
        let filled = out.len();
        // Behind the end of a text file there may be many positions without bytes.
        out.resize(filled + (end - at).min(READ_BYTES) as usize, 0);
        let piece = match shipper.read(Lsn::new(at), &mut out[filled..]) {
            Err(error) if is_absent(error.kind()) => return Ok(None),
            piece => piece?,
        };
        out.truncate(filled + piece.len);
        if piece.segment.is_lost && at == start && is_lost(shipper, start, end)? {
            return Ok(Some(Link { start, end, file: None, content: Hash::default() }));
        }
        let is_stuck = piece.next.get() == at || piece.segment.is_lost;
        if is_stuck || (out.len() - first) as u64 > CHUNK_BYTES_MAX {
            return Ok(None);
        }
        if at == start {
            file = mark(start, &piece);
        }
        let bytes_end = at + piece.len as u64;
        at = piece.next.get();
        if at > end && bytes_end != end {
            return Ok(None);
        }
    }
    Ok(Some(Link { start, end, file, content: hash(&out[first..]) }))
}

/// Whether the files of all these positions are lost, in the midst of the log.
fn is_lost(shipper: &Shipper, start: u64, end: u64) -> Result<bool, ShipError> {
    let mut at = start;
    while at < end {
        let piece = match shipper.read(Lsn::new(at), &mut [0; LOOK_BYTES]) {
            Err(error) if is_absent(error.kind()) => return Ok(false),
            piece => piece?,
        };
        if !piece.segment.is_lost || piece.next.get() == at {
            return Ok(false);
        }
        at = piece.next.get();
    }
    Ok(at == end)
}

fn is_absent(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Trimmed | ErrorKind::OutOfRange)
}
