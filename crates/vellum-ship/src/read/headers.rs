//! The headers of objects, of which many are fetched at a time.

use std::collections::{BTreeMap, HashMap};

use futures_util::{StreamExt, TryStreamExt, stream};

use super::ReadError;
use super::retry::patiently;
use crate::object::{BadObject, HEADER_BYTES, Header, Key, parse};
use crate::store::{Store, StoreErrorKind};

/// Requests in flight.
const JOBS: usize = 16;
/// Tries of an object that is cut short or damaged: it may have been so on the way.
const TRIES: u32 = 3;

/// Headers that were seen. Objects never change, so one that was seen is good for ever; that one
/// was not there is never remembered.
pub(super) struct Headers<'a> {
    store: &'a dyn Store,
    log_id: [u8; 16],
    seen: HashMap<Key, Header>,
    /// The generations whose headers were fetched ahead; `None`: nothing is fetched ahead.
    ahead: Option<Vec<u32>>,
}

impl<'a> Headers<'a> {
    /// Headers that are fetched one by one.
    pub(super) fn few(store: &'a dyn Store, log_id: [u8; 16]) -> Headers<'a> {
        Headers { store, log_id, seen: HashMap::new(), ahead: None }
    }

    /// Headers that are all fetched when a generation's objects are listed for the first time, so
    /// that walking along the chain needs no request for each.
    pub(super) fn all(store: &'a dyn Store, log_id: [u8; 16]) -> Headers<'a> {
        Headers { ahead: Some(Vec::new()), ..Headers::few(store, log_id) }
    }

    /// The names of a generation's merged objects.
    pub(super) async fn list(&mut self, generation: u32) -> Result<Vec<Key>, ReadError> {
        if self.ahead.as_ref().is_some_and(|ahead| !ahead.contains(&generation)) {
            let keys = self.names(&format!("g{generation:08x}/")).await?;
            self.fetch(needed(keys)).await?;
            self.ahead.iter_mut().for_each(|ahead| ahead.push(generation));
        }
        self.names(&crate::object::merged_prefix(generation)).await
    }

    /// The header of an object; none if there is no such object.
    pub(super) async fn look(&mut self, key: Key) -> Result<Option<Header>, ReadError> {
        if let Some(header) = self.seen.get(&key) {
            return Ok(Some(*header));
        }
        let header = header_of(self.store, self.log_id, key).await?;
        self.seen.extend(header.map(|header| (key, header)));
        Ok(header)
    }

    async fn names(&self, prefix: &str) -> Result<Vec<Key>, ReadError> {
        let listed = patiently(prefix, || self.store.list(prefix, None)).await?;
        Ok(listed.iter().filter_map(|meta| parse(&meta.key)).collect())
    }

    async fn fetch(&mut self, keys: Vec<Key>) -> Result<(), ReadError> {
        let (store, log_id) = (self.store, self.log_id);
        let headers = stream::iter(keys).map(|key| async move {
            let header = strays_allowed(header_of(store, log_id, key).await)?;
            Ok::<_, ReadError>(header.map(|header| (key, header)))
        });
        let found: Vec<_> = headers.buffer_unordered(JOBS).try_collect().await?;
        self.seen.extend(found.into_iter().flatten());
        Ok(())
    }
}

/// Merged objects, and the chunks that none of them covers.
fn needed(keys: Vec<Key>) -> Vec<Key> {
    let range = |key: &Key| match *key {
        Key::Merged { start, end, .. } => Some((end, start)),
        _ => None,
    };
    let merged: BTreeMap<u64, u64> = keys.iter().filter_map(range).collect();
    let is_covered = |key: &Key| match *key {
        Key::Link { start, .. } => {
            merged.range(start + 1..).next().is_some_and(|(_, first)| *first <= start)
        }
        _ => false,
    };
    keys.into_iter().filter(|key| !is_covered(key)).collect()
}

/// A damaged object, or a file that is no object, does no harm beside the chain; one on the chain
/// is fetched again.
fn strays_allowed(header: Result<Option<Header>, ReadError>) -> Result<Option<Header>, ReadError> {
    match header {
        Err(ReadError::Object { .. }) => Ok(None),
        Err(ReadError::Store { error, .. }) if error.kind() == StoreErrorKind::NotAnObject => {
            Ok(None)
        }
        header => header,
    }
}

async fn header_of(
    store: &dyn Store,
    log_id: [u8; 16],
    key: Key,
) -> Result<Option<Header>, ReadError> {
    let name = key.to_string();
    let mut fault = BadObject::Short;
    for _ in 0..TRIES {
        let range = 0..HEADER_BYTES as u64;
        let bytes = patiently(&name, || store.get_range(&name, range.clone())).await?;
        let Some(bytes) = bytes else { return Ok(None) };
        match Header::decode(&bytes) {
            Ok(header) if header.log_id == log_id => return Ok(Some(header)),
            Ok(_) => fault = BadObject::NotOurs,
            Err(error) => fault = error,
        }
    }
    Err(ReadError::Object { key: name, fault })
}
