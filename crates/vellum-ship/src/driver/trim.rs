//! Deleting old generations.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt, stream};
use vellum::ship::Decoder;
use vellum::{Layout, Lsn};

use super::ShipError;
use super::requests::{blocking, nanos, now};
use crate::decide::{Ended, Keep, Point, Retain, Trouble, deletable, old};
use crate::object::{self, BadObject, Hash, Header, Key, Kind, Link, hash};
use crate::read::Remote;
use crate::store::{Meta, Store};

/// Requests in flight.
const JOBS: usize = 8;

/// The deleted generations and objects.
#[derive(Clone, Copy, Debug, Default)]
pub struct Trimmed {
    /// Objects.
    pub objects: u64,
    /// Generations of which nothing is left but seal and marker.
    pub generations: u32,
}

/// Deletes the generations that ended longer than `retain` ago, by the times in their seals and the
/// clock of this machine. The generation that is shipped to is never touched, nor is an old one if
/// no log could begin where the next one does. The remaining log can be restored at any moment in
/// between, and after a death.
///
/// # Errors
///
/// Errors of the store. Objects that were deleted by then stay deleted; the next call continues.
pub async fn trim(
    store: Arc<dyn Store>,
    retain: Duration,
    is_dry: bool,
) -> Result<Trimmed, ShipError> {
    let mut retention = Retention::open(store, is_dry).await?;
    retention.learn_all().await?;
    let retain = u64::try_from(retain.as_nanos()).unwrap_or(u64::MAX);
    let until = now().saturating_sub(retain);
    let old = retention.ends.iter().take_while(|end| end.seal.time <= until).count();
    retention.delete(old).await
}

/// Says what the owner of the log would delete now
/// ([`KeepOptions::retain`](super::KeepOptions::retain)).
///
/// # Errors
///
/// Errors of the store.
pub async fn would_delete(store: Arc<dyn Store>, retain: Retain) -> Result<Trimmed, ShipError> {
    let mut retention = Retention::open(store, true).await?;
    let newest = retention.learn_all().await?;
    retention.pass(newest, retain).await
}

/// A generation that has ended.
struct End {
    seal: Header,
    /// When the store says that the seal was made, in nanoseconds since 1970.
    stored: u64,
    /// Its remaining bytes in the store, once these were counted.
    bytes: Option<u64>,
    is_gone: bool,
}

impl End {
    fn point(&self) -> Point {
        Point { lsn: self.seal.start, chain: self.seal.before }
    }

    /// Where the next generation begins.
    fn next(&self) -> (u32, Point) {
        let chain = hash(&self.seal.encode());
        (self.seal.generation + 1, Point { lsn: self.seal.fork, chain })
    }
}

/// The known generations that have ended. Seals never change.
pub(super) struct Retention {
    remote: Remote,
    is_dry: bool,
    /// The generations, from the first one on.
    ends: Vec<End>,
}

impl Retention {
    pub(super) async fn open(store: Arc<dyn Store>, is_dry: bool) -> Result<Retention, ShipError> {
        let remote = Remote::open(store).await?;
        Ok(Retention { remote, is_dry, ends: Vec::new() })
    }

    fn store(&self) -> &dyn Store {
        self.remote.store().as_ref()
    }

    /// Deletes what the owner of `generation` does not retain: old generations, and the chunks of
    /// others that are in merged objects too. If the objects do not lead to it, nothing is deleted:
    /// another shipper has taken over, or objects are missing.
    pub(super) async fn pass(
        &mut self,
        generation: u32,
        retain: Retain,
    ) -> Result<Trimmed, ShipError> {
        let mut trimmed = Trimmed::default();
        if self.learn(generation).await? != generation {
            return Err(ShipError::Unclear);
        }
        for index in 0..self.ends.len() {
            if self.ends[index].bytes.is_none() {
                trimmed.objects += self.delete_of(index, Keep::From(0)).await?;
            }
        }
        let ended = |end: &End| Ended { told: end.seal.time, stored: end.stored, bytes: end.bytes };
        let ended: Vec<Ended> = self.ends.iter().map(ended).collect();
        let deleted = self.delete(old(&ended, retain)).await?;
        trimmed.objects += deleted.objects;
        trimmed.generations = deleted.generations;
        Ok(trimmed)
    }

    /// Finds the generations before `last` that are not known. Returns the one they lead to.
    async fn learn(&mut self, last: u32) -> Result<u32, ShipError> {
        let first = (0, self.remote.from());
        let (generation, from) = self.ends.last().map_or(first, End::next);
        let plan = self.remote.seals_before(last, generation, from).await?;
        for seal in plan.seals {
            let key = seal.key().expect("a seal has a name").to_string();
            let meta = self.store().head(&key).await?.ok_or(Trouble::Unstable)?;
            let stored = nanos(meta.modified);
            self.ends.push(End { seal, stored, bytes: None, is_gone: false });
        }
        Ok(plan.generation)
    }

    /// Finds all generations. Refuses a store that has a later one than its objects lead to.
    async fn learn_all(&mut self) -> Result<u32, ShipError> {
        let newest = self.learn(u32::MAX).await?;
        let folders = self.store().folders("").await?;
        let markers = folders.iter().filter_map(|name| object::parse(&format!("{name}/closed")));
        match markers.into_iter().all(|marker| marker.generation() <= newest) {
            true => Ok(newest),
            false => Err(ShipError::Unclear),
        }
    }

    /// Deletes the oldest `count` generations. The newest of them goes first: with its end all of
    /// them are out of sight. Fewer are deleted if no log can begin behind them.
    async fn delete(&mut self, mut count: usize) -> Result<Trimmed, ShipError> {
        let mut trimmed = Trimmed::default();
        while self.ends[..count].iter().any(|end| !end.is_gone) {
            if self.can_begin_behind(&self.ends[count - 1]).await? {
                break;
            }
            count -= 1;
        }
        for index in (0..count).rev() {
            if !self.ends[index].is_gone {
                let deleted = self.delete_of(index, Keep::Nothing).await?;
                self.ends[index].is_gone = true;
                trimmed.objects += deleted;
                trimmed.generations += u32::from(deleted > 0);
            }
        }
        Ok(trimmed)
    }

    /// Whether a log can be restored that begins where the next generation does: a record begins
    /// there, or a file of a text log. A record may be longer than a chunk.
    async fn can_begin_behind(&self, end: &End) -> Result<bool, ShipError> {
        let (generation, at) = end.next();
        let Some(object) = self.first_object(generation, at).await? else { return Ok(false) };
        let opened = blocking(move || Ok(object::open(&object))).await?;
        let Ok((header, raw)) = opened else { return Ok(false) };
        let is_it = header.generation == generation && header.before == at.chain;
        let has_bytes = matches!(header.kind, Kind::Chunk | Kind::Merged);
        if !is_it || !has_bytes || header.start != at.lsn {
            return Ok(false);
        }
        if self.remote.shape().layout() == Layout::Text {
            return Ok(header.file.is_some());
        }
        let mut decoder = Decoder::new(self.remote.shape());
        decoder.push(Lsn::new(at.lsn), &raw);
        Ok(matches!(decoder.next(), Ok(Some(_))))
    }

    async fn first_object(
        &self,
        generation: u32,
        at: Point,
    ) -> Result<Option<bytes::Bytes>, ShipError> {
        if let Some(chunk) = self.store().get(&at.key(generation).to_string()).await? {
            return Ok(Some(chunk));
        }
        let listed = self.store().list(&object::merged_prefix(generation), None).await?;
        let is_first = |key: &Key| {
            let at = (at.lsn, at.chain.prefix());
            matches!(*key, Key::Merged { start, chain, .. } if (start, chain) == at)
        };
        let names = listed.iter().filter_map(|meta| object::parse(&meta.key));
        match names.into_iter().find(is_first) {
            Some(key) => Ok(self.store().get(&key.to_string()).await?),
            None => Ok(None),
        }
    }

    /// Deletes what is not needed of a generation, after it was closed. Returns how much that is.
    async fn delete_of(&mut self, index: usize, keep: Keep) -> Result<u64, ShipError> {
        let seal = self.ends[index].seal;
        let listed = self.store().list(&format!("g{:08x}/", seal.generation), None).await?;
        let names: Vec<Key> = listed.iter().filter_map(|meta| object::parse(&meta.key)).collect();
        let old = deletable(seal.generation, self.ends[index].point(), &names, keep);
        if !old.is_empty() {
            self.close(&seal).await?;
        }
        if !self.is_dry {
            delete_all(self.store(), &old).await?;
        }
        self.ends[index].bytes = Some(bytes_without(&listed, &old));
        Ok(old.len() as u64)
    }

    /// Makes the marker, before anything is deleted. One that says something else means that not
    /// all is known.
    async fn close(&self, seal: &Header) -> Result<(), ShipError> {
        let key = object::closed_name(seal.generation);
        let mut found = self.store().get(&key).await?;
        if found.is_none() && !self.is_dry {
            self.store().create(&key, marker(seal)).await?;
            found = Some(self.store().get(&key).await?.ok_or(Trouble::Unstable)?);
        }
        let Some(found) = found else { return Ok(()) };
        let fault = |fault: BadObject| ShipError::Object { key: key.clone(), fault };
        let found = Header::decode(&found).map_err(fault)?;
        let is_same = (found.kind, found.log_id) == (Kind::Closed, seal.log_id)
            && (found.start, found.before) == (seal.start, seal.before)
            && found.generation == seal.generation;
        if is_same { Ok(()) } else { Err(Trouble::Damaged(key).into()) }
    }
}

fn marker(seal: &Header) -> bytes::Bytes {
    let link = Link { start: seal.start, end: seal.start, file: None, content: Hash::default() };
    let draft = Header::draft(Kind::Closed, seal.generation, seal.before, link);
    object::closed(Header { log_id: seal.log_id, time: now(), ..draft }).bytes
}

/// One after the other, until readers find nothing of the end; then several at a time.
async fn delete_all(store: &dyn Store, keys: &[Key]) -> Result<(), ShipError> {
    let is_link = |key: &Key| matches!(key, Key::Link { .. });
    let first = keys.iter().position(is_link).map_or(keys.len(), |index| index + 1);
    for key in &keys[..first] {
        store.delete(&key.to_string()).await?;
    }
    let names: Vec<String> = keys[first..].iter().map(ToString::to_string).collect();
    let rest = stream::iter(names).map(|name| async move { store.delete(&name).await });
    Ok(rest.buffer_unordered(JOBS).try_collect::<()>().await?)
}

fn bytes_without(listed: &[Meta], deleted: &[Key]) -> u64 {
    let deleted: std::collections::HashSet<String> =
        deleted.iter().map(ToString::to_string).collect();
    listed.iter().filter(|meta| !deleted.contains(&meta.key)).map(|meta| meta.size).sum()
}
