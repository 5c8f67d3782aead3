//! The owner begins its next generation, so that the one before can be deleted one day.

use std::sync::Arc;

use super::ShipError;
use super::requests::Requests;
use super::start::nonce;
use super::state::State;
use crate::decide::{Claim, Claimed, Intent, Saved};

/// Where rotating is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rotate {
    /// Chunks are shipped.
    Not,
    /// Chunks in flight end first.
    Draining,
    /// The seal is made.
    Rotating,
}

/// Seals the generation at its owner's position, and begins the next one there. Where another
/// shipper has put an object, nothing is sealed, and the owner reads it. Returns the stored state
/// then. If the process dies, the next one finishes it.
pub(super) async fn rotate(
    requests: Arc<Requests>,
    mut state: State,
    saved: Saved,
) -> Result<(State, Saved), ShipError> {
    let (generation, point) = (saved.generation, saved.point);
    let intent = Intent::rotate(nonce(), generation, point.lsn);
    state.set_claim(Some(intent));
    state.store(&requests.shipper).await?;
    let mut claim = Claim::new(intent, generation, point);
    while let Some(ask) = claim.ask() {
        claim.answer(requests.answer(ask, None).await?);
    }
    // Won or not, it is over.
    state.set_claim(None);
    let saved = match claim.outcome() {
        Some(Claimed::Won { saved, .. }) => {
            state.begin_generation(&saved);
            saved
        }
        Some(Claimed::Failed(trouble)) => return Err(trouble.into()),
        Some(Claimed::Moved) => saved,
        _ => return Err(ShipError::Lost),
    };
    state.store(&requests.shipper).await?;
    Ok((state, saved))
}
