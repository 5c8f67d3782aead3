//! The file `ship` in the log's directory: the state that a shipper needs after a crash.
//!
//! It is replaced as a whole and durably. It holds no credentials.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use vellum::ship::Shipper;

use super::ShipError;
use super::requests::{blocking, now};
use crate::decide::{Flight, Intent, Point, Saved};
use crate::object::{FileMark, Hash, Link};

/// Nanoseconds.
const SECOND: u64 = 1_000_000_000;
/// Seconds.
const HOUR: u64 = 3600;

/// The stored state. Hashes and the nonces are hexadecimal.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct State {
    pub(super) version: u32,
    pub(super) url: String,
    pub(super) log_id: String,
    /// The log's epoch when what follows was found out.
    pub(super) epoch: u64,
    /// The number by which the object `log` is known to be this log's own.
    pub(super) origin: String,
    pub(super) owned: Option<Owned>,
    pub(super) claim: Option<StoredIntent>,
    /// Absent in files of earlier versions.
    #[serde(default)]
    pub(super) upkeep: Option<Upkeep>,
}

/// Further knowledge of the generation that is owned.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Upkeep {
    generation: u32,
    /// When it was begun, or first seen, in seconds since 1970.
    since: u64,
    /// Its first position.
    begin: u64,
    /// Where the chunks begin that are not merged.
    merge: Option<StoredPoint>,
    /// How many they are.
    unmerged: u64,
    /// When old generations were looked for last, in seconds since 1970.
    looked: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct StoredPoint {
    lsn: u64,
    chain: String,
}

/// The generation that is owned.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Owned {
    generation: u32,
    nonce: String,
    lsn: u64,
    chain: String,
    flights: Vec<StoredFlight>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct StoredFlight {
    start: u64,
    end: u64,
    content: String,
    begins_file: bool,
    file_time: Option<u64>,
    is_continuation: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct StoredIntent {
    nonce: String,
    fork: Option<u64>,
    only: Option<u32>,
    #[serde(default)]
    is_exact: bool,
}

impl State {
    /// The stored state; nothing if the log was never shipped.
    pub(super) async fn load(shipper: &Arc<Shipper>) -> Result<Option<State>, ShipError> {
        let shipper = Arc::clone(shipper);
        let Some(text) = blocking(move || Ok(shipper.load()?)).await? else { return Ok(None) };
        let state: State =
            serde_json::from_slice(&text).map_err(|error| ShipError::State(error.to_string()))?;
        match state.version {
            1 => Ok(Some(state)),
            other => Err(ShipError::State(format!("it has the version {other}, not 1"))),
        }
    }

    /// Replaces the file. When this returns, it is durable.
    pub(super) async fn store(&self, shipper: &Arc<Shipper>) -> Result<(), ShipError> {
        let (shipper, text) = (Arc::clone(shipper), self.to_bytes());
        blocking(move || Ok(shipper.save(&text)?)).await
    }

    /// The content of the file.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec_pretty(self).expect("numbers and text")
    }

    pub(super) fn set_saved(&mut self, saved: &Saved) {
        self.owned = Some(Owned {
            generation: saved.generation,
            nonce: format!("{:032x}", saved.nonce),
            lsn: saved.point.lsn,
            chain: saved.point.chain.to_string(),
            flights: saved.flights.iter().map(stored_flight).collect(),
        });
    }

    pub(super) fn saved(&self) -> Option<Saved> {
        let owned = self.owned.as_ref()?;
        Some(Saved {
            generation: owned.generation,
            nonce: u128::from_str_radix(&owned.nonce, 16).ok()?,
            point: Point { lsn: owned.lsn, chain: hash_of(&owned.chain)? },
            flights: owned.flights.iter().map(flight).collect::<Option<_>>()?,
        })
    }

    /// A generation begins here and now. Merged objects may begin here.
    pub(super) fn begin_generation(&mut self, saved: &Saved) {
        self.set_saved(saved);
        self.begin_upkeep(saved, Some(saved.point));
    }

    fn begin_upkeep(&mut self, saved: &Saved, merge: Option<Point>) {
        let (generation, since, begin) = (saved.generation, now() / SECOND, saved.point.lsn);
        let merge = merge.map(stored_point);
        self.upkeep = Some(Upkeep { generation, since, begin, merge, unmerged: 0, looked: 0 });
    }

    /// Makes up for a file that does not know the generation. Of a clock that was put back, the
    /// time before counts for nothing.
    pub(super) fn complete(&mut self, saved: &Saved) {
        let now = now() / SECOND;
        match self.upkeep.as_mut().filter(|upkeep| upkeep.generation == saved.generation) {
            Some(upkeep) => upkeep.since = upkeep.since.min(now),
            None => self.begin_upkeep(saved, None),
        }
    }

    /// How long the generation has lasted.
    pub(super) fn age(&self) -> Duration {
        let since = self.upkeep.as_ref().map_or(u64::MAX, |upkeep| upkeep.since);
        Duration::from_secs((now() / SECOND).saturating_sub(since))
    }

    /// Whether old generations are to be looked for, which is then noted: each hour, and after a
    /// generation was begun.
    pub(super) fn is_retention_due(&mut self) -> bool {
        let Some(upkeep) = &mut self.upkeep else { return false };
        let now = now() / SECOND;
        let is_due = now.abs_diff(upkeep.looked) >= HOUR;
        upkeep.looked = if is_due { now } else { upkeep.looked };
        is_due
    }

    /// The first position of the generation.
    pub(super) fn begin(&self) -> u64 {
        self.upkeep.as_ref().map_or(0, |upkeep| upkeep.begin)
    }

    /// Where the chunks begin that are not merged, if a merged object may begin there; and how many
    /// they are.
    pub(super) fn merge(&self) -> Option<(Point, u64)> {
        let upkeep = self.upkeep.as_ref()?;
        let stored = upkeep.merge.as_ref()?;
        Some((Point { lsn: stored.lsn, chain: hash_of(&stored.chain)? }, upkeep.unmerged))
    }

    pub(super) fn set_merge(&mut self, at: Option<(Point, u64)>) {
        if let Some(upkeep) = &mut self.upkeep {
            upkeep.merge = at.map(|(point, _)| stored_point(point));
            upkeep.unmerged = at.map_or(0, |(_, unmerged)| unmerged);
        }
    }

    pub(super) fn set_claim(&mut self, intent: Option<Intent>) {
        self.claim = intent.map(|intent| StoredIntent {
            nonce: format!("{:032x}", intent.nonce),
            fork: intent.fork,
            only: intent.only,
            is_exact: intent.is_exact,
        });
    }

    pub(super) fn intent(&self) -> Option<Intent> {
        let claim = self.claim.as_ref()?;
        let nonce = u128::from_str_radix(&claim.nonce, 16).ok()?;
        Some(Intent { nonce, fork: claim.fork, only: claim.only, is_exact: claim.is_exact })
    }
}

fn stored_point(point: Point) -> StoredPoint {
    StoredPoint { lsn: point.lsn, chain: point.chain.to_string() }
}

fn stored_flight(flight: &Flight) -> StoredFlight {
    let Link { start, end, file, content } = flight.link;
    StoredFlight {
        start,
        end,
        content: content.to_string(),
        begins_file: file.is_some(),
        file_time: file.and_then(|file| file.time),
        is_continuation: file.is_some_and(|file| file.is_continuation),
    }
}

fn flight(stored: &StoredFlight) -> Option<Flight> {
    let mark = FileMark { time: stored.file_time, is_continuation: stored.is_continuation };
    let file = stored.begins_file.then_some(mark);
    let content = hash_of(&stored.content)?;
    Some(Flight { link: Link { start: stored.start, end: stored.end, file, content } })
}

fn hash_of(text: &str) -> Option<Hash> {
    let mut out = [0; 32];
    let is_hash = text.len() == 64 && text.is_ascii();
    for (index, byte) in out.iter_mut().enumerate().filter(|_| is_hash) {
        *byte = u8::from_str_radix(&text[2 * index..2 * index + 2], 16).ok()?;
    }
    is_hash.then_some(Hash(out))
}
