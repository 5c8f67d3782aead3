//! A log's pieces with their bytes, one after the other, whatever is merged or removed meanwhile.

use std::pin::Pin;
use std::sync::Arc;

use futures_util::{Stream, StreamExt};

use super::fetch::{Fetched, fetch_all};
use super::{Extent, ReadError, Remote, Until};
use crate::decide::Piece;

/// How often objects may be gone before the user is asked to stop the deletion.
const REPLANS_MAX: u32 = 10;

type Fetches = Pin<Box<dyn Stream<Item = Result<Option<Fetched>, ReadError>> + Send>>;

/// Fetches the pieces of an extent, in order.
pub struct Pieces<'a> {
    remote: &'a Remote,
    end: u64,
    /// Everything before this was returned.
    at: u64,
    jobs: usize,
    fetches: Fetches,
    replans: u32,
}

impl<'a> Pieces<'a> {
    /// The pieces of `extent` from position `at` on, `jobs` of which are fetched at the same time.
    pub fn new(remote: &'a Remote, extent: &Extent, at: u64, jobs: usize) -> Pieces<'a> {
        let fetches = fetches(remote, &extent.pieces, at, jobs);
        Pieces { remote, end: extent.end, at, jobs, fetches, replans: 0 }
    }

    /// The next piece; `None` at the end. A missing object was merged or removed since the plan was
    /// made: a new plan names the object that has its range now.
    pub async fn next(&mut self) -> Result<Option<Fetched>, ReadError> {
        loop {
            match self.fetches.next().await.transpose()? {
                Some(Some(fetched)) => {
                    self.at = fetched.piece.until;
                    return Ok(Some(fetched));
                }
                None if self.at >= self.end => return Ok(None),
                _ => self.plan_again().await?,
            }
        }
    }

    async fn plan_again(&mut self) -> Result<(), ReadError> {
        self.replans += 1;
        if self.replans > REPLANS_MAX {
            return Err(ReadError::Unstable);
        }
        let plan = self.remote.plan().await?;
        let store = self.remote.store().as_ref();
        let extent = Extent::of(&plan, Until::Position(self.end), store).await?;
        if extent.begin > self.at {
            let text = format!("what follows {} was removed while it was read", self.at);
            return Err(ReadError::Position(text));
        }
        self.fetches = fetches(self.remote, &extent.pieces, self.at, self.jobs);
        Ok(())
    }
}

fn fetches(remote: &Remote, pieces: &[Piece], at: u64, jobs: usize) -> Fetches {
    let pieces = pieces.iter().filter(|piece| piece.until > at).copied().collect();
    Box::pin(fetch_all(Arc::clone(remote.store()), pieces, jobs))
}
