//! How far to restore: all of it, up to a position, or up to a time.

use futures_util::{StreamExt, TryStreamExt, stream};

use super::ReadError;
use super::fetch::marks_of;
use super::retry::patiently;
use crate::decide::{Piece, Plan};
use crate::object::{Kind, table_end};
use crate::store::Store;

/// Requests in flight.
const JOBS: usize = 16;

/// The wanted end of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Everything.
    End,
    /// Everything before a position.
    Position(u64),
    /// Everything shipped by a time, in nanoseconds since 1970: whole chunks, so as exact as the
    /// shipper's interval. A clock that was put back counts as stopped.
    Time(u64),
}

/// Pieces of a log without a hole.
#[derive(Clone, Debug)]
pub struct Extent {
    /// In order, the last one perhaps cut.
    pub pieces: Vec<Piece>,
    /// The first position.
    pub begin: u64,
    /// The position behind the last.
    pub end: u64,
    /// Whether it ends before the log does.
    pub is_cut: bool,
}

impl Extent {
    /// The extent of a plan up to that end.
    pub async fn of(plan: &Plan, until: Until, store: &dyn Store) -> Result<Extent, ReadError> {
        let end = match until {
            Until::End => plan.end.lsn,
            Until::Position(position) => within(plan, position)?,
            Until::Time(time) => end_by_time(plan, time, store).await?,
        };
        let extent = Extent::up_to(plan, end);
        extent.check()?;
        Ok(extent)
    }

    fn up_to(plan: &Plan, end: u64) -> Extent {
        let wanted = plan.pieces.iter().filter(|piece| piece.header.start < end);
        let pieces = wanted.map(|piece| Piece { until: piece.until.min(end), ..*piece }).collect();
        Extent { pieces, begin: plan.begin, end, is_cut: end < plan.end.lsn }
    }

    /// Makes sure, before anything is written, that there is no hole.
    fn check(&self) -> Result<(), ReadError> {
        let mut at = self.begin;
        for piece in &self.pieces {
            if piece.header.start != at {
                let start = piece.header.start;
                return Err(ReadError::Position(format!("nothing is stored of {at} to {start}")));
            }
            at = piece.until;
        }
        match at == self.end {
            true => Ok(()),
            false => Err(ReadError::Position(format!("nothing is stored of {at} to {}", self.end))),
        }
    }

    /// Bytes of the log in it.
    pub fn bytes(&self) -> u64 {
        self.bytes_before(self.end)
    }

    /// Bytes of the log in front of a position.
    pub fn bytes_before(&self, end: u64) -> u64 {
        self.pieces.iter().map(|piece| piece.bytes_before(end)).sum()
    }

    /// The ranges that were lost before they were shipped.
    pub fn gaps(&self) -> Vec<(u64, u64)> {
        gaps(&self.pieces)
    }
}

/// What was lost before it was shipped, of these pieces.
pub fn gaps(pieces: &[Piece]) -> Vec<(u64, u64)> {
    let gaps = pieces.iter().filter(|piece| piece.header.kind == Kind::Gap);
    gaps.map(|piece| (piece.header.start, piece.until)).collect()
}

fn within(plan: &Plan, position: u64) -> Result<u64, ReadError> {
    if (plan.begin..=plan.end.lsn).contains(&position) {
        return Ok(position);
    }
    let (begin, end) = (plan.begin, plan.end.lsn);
    Err(ReadError::Position(format!("{position} is not within what is stored: {begin} to {end}")))
}

/// The end of the last chunk before the first one that was shipped later.
async fn end_by_time(plan: &Plan, time: u64, store: &dyn Store) -> Result<u64, ReadError> {
    let times = stream::iter(&plan.pieces).map(|piece| times_of(piece, store)).buffered(JOBS);
    let times: Vec<Vec<(u64, u64)>> = times.try_collect().await?;
    let in_time = times.iter().flatten().take_while(|(_, shipped)| *shipped <= time);
    match in_time.last() {
        Some((end, _)) => Ok((*end).min(plan.end.lsn)),
        None => Err(ReadError::Position("nothing was shipped by that time".to_string())),
    }
}

/// The ends of the piece's chunks, and when each was shipped.
async fn times_of(piece: &Piece, store: &dyn Store) -> Result<Vec<(u64, u64)>, ReadError> {
    let header = &piece.header;
    if header.kind != Kind::Merged {
        return marks_of(piece, &[]).map_err(|_| ReadError::Unstable);
    }
    let key = header.key().map(|key| key.to_string()).unwrap_or_default();
    let range = 0..table_end(header);
    let bytes = patiently(&key, || store.get_range(&key, range.clone())).await?;
    let bytes = bytes.ok_or(ReadError::Unstable)?;
    marks_of(piece, &bytes).map_err(|fault| ReadError::Object { key, fault })
}
