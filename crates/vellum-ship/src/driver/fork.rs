//! Where the local log and the shipped one part.

use std::sync::Arc;

use futures_util::StreamExt;
use vellum::ship::Shipper;

use super::ShipError;
use super::local;
use super::requests::{Requests, blocking};
use crate::decide::{Answer, Ask, Piece, Plan};
use crate::object::{Hash, Kind, Mark, hash};
use crate::read::fetch_all;

/// The end that the local log and the store have in common, as far as the local log can tell:
/// ranges that it has removed count as common. Chunks that end before `trusted` are not compared.
/// Costs a read of the local log from there on.
pub(super) async fn find(requests: &Requests, plan: &Plan, trusted: u64) -> Result<u64, ShipError> {
    let begin = requests.shipper.begin().get();
    let first = trusted.max(begin);
    for piece in plan.pieces.iter().filter(|piece| piece.until > first) {
        let differs = match piece.header.start < begin {
            true => rest_differs(requests, *piece, begin).await?.then_some(first),
            false => {
                let (shipper, piece) = (Arc::clone(&requests.shipper), *piece);
                let marks = marks(requests, piece).await?;
                blocking(move || difference(&shipper, piece, &marks, first)).await?
            }
        };
        if let Some(differs) = differs {
            return Ok(differs);
        }
    }
    Ok(plan.end.lsn)
}

/// Whether the local log has other bytes in the rest of a piece here. The hash covers the removed
/// part too, so the object is fetched.
async fn rest_differs(requests: &Requests, piece: Piece, begin: u64) -> Result<bool, ShipError> {
    let (shipper, until) = (Arc::clone(&requests.shipper), piece.until);
    let local = blocking(move || local::link(&shipper, begin, until)).await?;
    let Some(local) = local.filter(|local| local.end == until) else { return Ok(true) };
    if piece.header.kind == Kind::Gap {
        return Ok(local.content != Hash::default());
    }
    let fetched = std::pin::pin!(fetch_all(Arc::clone(&requests.store), vec![piece], 1));
    let Some(fetched) = fetched.into_future().await.0.transpose()?.flatten() else {
        return Ok(true);
    };
    let gone = (begin - piece.header.start).min(fetched.raw.len() as u64) as usize;
    Ok(hash(&fetched.raw[gone..]) != local.content)
}

/// The chunks of a piece: of a merged object those that it covers.
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
