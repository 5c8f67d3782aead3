//! A store in the memory of this process, for tests.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard};
use std::time::SystemTime;

use async_trait::async_trait;
use bytes::Bytes;

use super::{Meta, PutOutcome, Store, StoreError};

type Objects = BTreeMap<String, (Bytes, SystemTime)>;

/// Objects in memory. Every request is atomic, and lists are never late.
#[derive(Debug, Default)]
pub struct MemoryStore {
    objects: Mutex<Objects>,
}

impl MemoryStore {
    /// A store without objects.
    pub fn new() -> MemoryStore {
        MemoryStore::default()
    }

    fn objects(&self) -> MutexGuard<'_, Objects> {
        self.objects.lock().expect("no holder panics")
    }
}

fn meta((key, (body, modified)): (&String, &(Bytes, SystemTime))) -> Meta {
    Meta { key: key.clone(), size: body.len() as u64, modified: *modified }
}

/// The range, cut at the end of the body.
pub(super) fn slice(body: &Bytes, range: Range<u64>) -> Bytes {
    let end = range.end.min(body.len() as u64);
    body.slice(range.start.min(end) as usize..end as usize)
}

#[async_trait]
impl Store for MemoryStore {
    async fn create(&self, key: &str, body: Bytes) -> Result<PutOutcome, StoreError> {
        match self.objects().entry(key.to_string()) {
            Entry::Occupied(_) => Ok(PutOutcome::Exists),
            Entry::Vacant(place) => {
                place.insert((body, SystemTime::now()));
                Ok(PutOutcome::Created)
            }
        }
    }

    async fn get(&self, key: &str) -> Result<Option<Bytes>, StoreError> {
        Ok(self.objects().get(key).map(|(body, _)| body.clone()))
    }

    async fn get_range(&self, key: &str, range: Range<u64>) -> Result<Option<Bytes>, StoreError> {
        Ok(self.objects().get(key).map(|(body, _)| slice(body, range)))
    }

    async fn head(&self, key: &str) -> Result<Option<Meta>, StoreError> {
        Ok(self.objects().get_key_value(key).map(meta))
    }

    async fn list(&self, prefix: &str, after: Option<&str>) -> Result<Vec<Meta>, StoreError> {
        let objects = self.objects();
        let found = objects.iter().filter(|(key, _)| key.starts_with(prefix));
        Ok(found
            .filter(|(key, _)| after.is_none_or(|after| key.as_str() > after))
            .map(meta)
            .collect())
    }

    async fn folders(&self, folder: &str) -> Result<Vec<String>, StoreError> {
        let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let mut names: Vec<String> = self
            .objects()
            .keys()
            .filter_map(|key| Some(key.strip_prefix(&prefix)?.split_once('/')?.0.to_string()))
            .collect();
        names.sort();
        names.dedup();
        Ok(names)
    }

    async fn delete(&self, key: &str) -> Result<(), StoreError> {
        self.objects().remove(key);
        Ok(())
    }
}
