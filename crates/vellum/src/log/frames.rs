//! Walking over the frames of a framed log.

use std::sync::Arc;

use crate::format::frame::{ALIGNMENT, HEADER_LEN, Header, Kind, frame_len};
use crate::log::batch::CoreRef;
use crate::log::core::Core;
use crate::log::window::Window;
use crate::{Lsn, Result};

/// What stands at a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// A whole frame; `next` is where the following one stands. A batch is stepped into.
    Frame {
        kind: Kind,
        payload_len: u64,
        next: Lsn,
    },
    /// Eight zero bytes: nothing was ever written here.
    Unwritten,
    /// Bytes that are no frame of this log at this position.
    Invalid(&'static str),
}

/// Looks at the frame at `lsn`, which must end by `limit`. The payload is then in the window.
pub(crate) fn look(core: &Core, window: &mut Window, lsn: Lsn, limit: Lsn) -> Result<Found> {
    let head = window.fetch(lsn, HEADER_LEN as u64, limit)?;
    let Ok(head) = <[u8; HEADER_LEN]>::try_from(head) else {
        return Ok(Found::Unwritten);
    };
    let header = Header::from_bytes(head);
    if header.is_unwritten() {
        return Ok(Found::Unwritten);
    }
    let payload_len = u64::from(header.length);
    let kind = core
        .codec
        .kind_by_header(lsn, header)
        .unwrap_or(Kind::Record);
    let step = if kind == Kind::Batch {
        HEADER_LEN as u64
    } else {
        frame_len(payload_len)
    };
    let next = Lsn::new(lsn.get() + step);
    if lsn.get() + frame_len(payload_len) > limit.get() {
        return Ok(Found::Invalid(
            "the frame reaches beyond the end of the log",
        ));
    }
    if kind == Kind::Record {
        let frame = window.fetch(lsn, HEADER_LEN as u64 + payload_len, limit)?;
        let Some(payload) = frame
            .get(HEADER_LEN..)
            .filter(|p| p.len() as u64 == payload_len)
        else {
            return Ok(Found::Invalid("the file ends in the middle of the record"));
        };
        if core.codec.record(lsn, header.length, &[payload]) != header {
            return Ok(Found::Invalid("the record does not match its checksum"));
        }
    }
    Ok(Found::Frame {
        kind,
        payload_len,
        next,
    })
}

/// Payload bytes that a search may checksum before it gives up: stale bytes in a recycled segment
/// can look like the headers of long records.
const SEARCH_BUDGET_BYTES: u64 = 256 << 20;

/// The first position behind `lsn` at which a frame of this log stands, before `limit`.
pub(crate) fn find_next(shared: &Arc<CoreRef>, lsn: Lsn, limit: Lsn) -> Option<Lsn> {
    let core = &shared.0;
    let mut headers = Window::new(Arc::clone(shared));
    let mut payloads = Window::new(Arc::clone(shared));
    let mut budget = SEARCH_BUDGET_BYTES;
    let mut next = lsn.get() + ALIGNMENT;
    while next < limit.get() {
        let at = Lsn::new(next);
        let header = headers.fetch(at, HEADER_LEN as u64, limit).ok()?;
        let header = Header::from_bytes(header.try_into().ok()?);
        next += ALIGNMENT;
        if header.is_unwritten() || at.get() + header.frame_len() > limit.get() {
            continue;
        }
        if core.codec.kind_by_header(at, header).is_none() {
            budget = budget.checked_sub(u64::from(header.length))?;
        }
        if let Ok(Found::Frame { .. }) = look(core, &mut payloads, at, limit) {
            return Some(at);
        }
    }
    None
}
