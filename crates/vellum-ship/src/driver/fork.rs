//! Where the local log and the shipped one part.

use std::sync::Arc;

use super::ShipError;
use super::local;
use super::requests::{Requests, blocking};
use crate::decide::{Piece, Plan};

/// The end of what the local log and the store have in common, as far as the local log can tell:
/// what it has removed counts as common. Objects that end before `trusted` are not compared.
/// Costs a read of the local log from there on.
pub(super) async fn find(requests: &Requests, plan: &Plan, trusted: u64) -> Result<u64, ShipError> {
    let begin = requests.shipper.begin().get();
    let first = trusted.max(begin);
    for piece in plan.pieces.iter().filter(|piece| piece.until > first) {
        if !is_same(requests, *piece, begin).await? {
            return Ok(piece.header.start);
        }
    }
    Ok(plan.end.lsn)
}

async fn is_same(requests: &Requests, piece: Piece, begin: u64) -> Result<bool, ShipError> {
    let header = piece.header;
    let is_gone = header.start < begin;
    let is_cut = piece.until < header.end;
    if is_gone || is_cut {
        return Ok(is_gone);
    }
    let shipper = Arc::clone(&requests.shipper);
    let (start, end) = (header.start, header.end);
    let local = blocking(move || local::link(&shipper, start, end)).await?;
    Ok(local == Some(header.link()))
}
