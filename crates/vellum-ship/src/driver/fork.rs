//! Where the local log and the shipped one part.

use std::sync::Arc;

use vellum::Shipper;

use super::ShipError;
use super::local;
use super::requests::{Requests, blocking};
use crate::decide::{Answer, Ask, Piece, Plan};
use crate::object::{Hash, Kind, Mark};

/// The end of what the local log and the store have in common, as far as the local log can tell:
/// what it has removed counts as common. Chunks that end before `trusted` are not compared.
/// Costs a read of the local log from there on.
pub(super) async fn find(requests: &Requests, plan: &Plan, trusted: u64) -> Result<u64, ShipError> {
    let first = trusted.max(requests.shipper.begin().get());
    for piece in plan.pieces.iter().filter(|piece| piece.until > first) {
        let (shipper, piece) = (Arc::clone(&requests.shipper), *piece);
        let marks = marks(requests, piece).await?;
        let differs = blocking(move || difference(&shipper, piece, &marks, first)).await?;
        if let Some(differs) = differs {
            return Ok(differs);
        }
    }
    Ok(plan.end.lsn)
}

/// The chunks of a piece: of a merged object those that it stands for.
async fn marks(requests: &Requests, piece: Piece) -> Result<Vec<Mark>, ShipError> {
    let header = piece.header;
    let whole = vec![Mark { end: header.end, time: header.time, after: header.after }];
    let Some(key) = header.key().filter(|_| header.kind == Kind::Merged) else { return Ok(whole) };
    match requests.answer(Ask::Marks(key), None).await? {
        Answer::Marks(Some((_, marks))) => Ok(marks),
        _ => Ok(whole),
    }
}

/// Where the first chunk begins that the local log does not have.
fn difference(
    shipper: &Shipper,
    piece: Piece,
    marks: &[Mark],
    first: u64,
) -> Result<Option<u64>, ShipError> {
    let (mut start, mut before) = (piece.header.start, piece.header.before);
    for mark in marks {
        if start >= piece.until {
            return Ok(None);
        }
        let is_looked_at = mark.end.min(piece.until) > first && start >= shipper.begin().get();
        let is_cut = mark.end > piece.until;
        if is_looked_at && (is_cut || !is_same(shipper, start, before, mark)?) {
            return Ok(Some(start));
        }
        (start, before) = (mark.end, mark.after);
    }
    Ok(None)
}

fn is_same(shipper: &Shipper, start: u64, before: Hash, mark: &Mark) -> Result<bool, ShipError> {
    let local = local::link(shipper, start, mark.end)?;
    Ok(local.is_some_and(|local| local.after(before) == mark.after))
}
