//! A store behind the crate `object_store`: three clouds.

use std::ops::Range;
use std::time::SystemTime;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::TryStreamExt;
use object_store::path::Path;
use object_store::{
    Error, GetOptions, GetRange, GetResult, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode,
    PutPayload,
};

use super::answers;
use super::patience::in_time;
use super::{MAX_OBJECT, Meta, PutOutcome, Store, StoreError, StoreErrorKind, too_large};
use crate::pool;

/// A store of `object_store`, below a prefix.
pub(super) struct Objects {
    store: Box<dyn ObjectStore>,
    /// `bucket NAME`, or `container NAME`.
    bucket: String,
    prefix: String,
}

impl Objects {
    pub(super) fn new(store: Box<dyn ObjectStore>, bucket: String, prefix: String) -> Objects {
        Objects { store, bucket, prefix }
    }

    fn path(&self, key: &str) -> Path {
        Path::from(format!("{}/{key}", self.prefix))
    }

    fn meta(&self, meta: ObjectMeta) -> Option<Meta> {
        let key = meta.location.as_ref().strip_prefix(&self.prefix)?.trim_start_matches('/');
        let modified = SystemTime::from(meta.last_modified);
        Some(Meta { key: key.to_string(), size: meta.size, modified })
    }

    fn convert(&self, error: &Error) -> StoreError {
        let text = text_of(error);
        match kind_of(error, &text) {
            kind @ StoreErrorKind::NoBucket => {
                StoreError::new(kind, format!("the {} does not exist", self.bucket))
            }
            kind => StoreError::new(kind, answers::plain(&text)),
        }
    }

    /// An absent object is no error.
    fn absent<T>(&self, error: &Error, nothing: T) -> Result<T, StoreError> {
        let converted = self.convert(error);
        match error {
            Error::NotFound { .. } if converted.kind() != StoreErrorKind::NoBucket => Ok(nothing),
            _ => Err(converted),
        }
    }

    /// Reads no more than `most` bytes.
    async fn read(
        &self,
        key: &str,
        most: u64,
        options: GetOptions,
    ) -> Result<Option<Bytes>, StoreError> {
        // The time limit follows from the object's size, and not from the largest possible size.
        let result = match in_time(0, self.store.get_opts(&self.path(key), options)).await? {
            Ok(result) => result,
            Err(error) => return self.absent(&error, None),
        };
        let bytes = result.range.end - result.range.start;
        if bytes > most {
            return Err(too_large(key, bytes));
        }
        match in_time(bytes, collect(result, bytes as usize)).await? {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) => self.absent(&error, None),
        }
    }
}

/// The requested bytes, in one buffer.
async fn collect(result: GetResult, bytes: usize) -> object_store::Result<Bytes> {
    let mut buffer = pool::reading(bytes);
    let mut stream = result.into_stream();
    let mut filled = 0;
    while let Some(part) = stream.try_next().await? {
        let room = &mut buffer.space()[filled..bytes];
        let length = part.len().min(room.len());
        room[..length].copy_from_slice(&part[..length]);
        filled += length;
    }
    buffer.set_filled(filled);
    Ok(Bytes::from_owner(buffer))
}

/// The text of an error and of everything below it that it does not repeat.
fn text_of(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let below = error.to_string();
        if !text.contains(&below) {
            text = format!("{text}: {below}");
        }
        source = error.source();
    }
    text
}

/// The kind of an error with this text.
fn kind_of(error: &Error, text: &str) -> StoreErrorKind {
    let kind = match error {
        Error::Generic { .. } | Error::JoinError { .. } => StoreErrorKind::Transient,
        _ => StoreErrorKind::Other,
    };
    answers::kind_of(text).unwrap_or(kind)
}

#[async_trait]
impl Store for Objects {
    async fn create(&self, key: &str, body: Bytes) -> Result<PutOutcome, StoreError> {
        let (bytes, path) = (body.len() as u64, self.path(key));
        let put = self.store.put_opts(&path, PutPayload::from(body), PutMode::Create.into());
        match in_time(bytes, put).await? {
            Ok(_) => Ok(PutOutcome::Created),
            Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => Ok(PutOutcome::Exists),
            Err(error) => Err(self.convert(&error)),
        }
    }

    async fn get(&self, key: &str) -> Result<Option<Bytes>, StoreError> {
        self.read(key, MAX_OBJECT, GetOptions::default()).await
    }

    async fn get_range(&self, key: &str, range: Range<u64>) -> Result<Option<Bytes>, StoreError> {
        let most = range.end.saturating_sub(range.start).min(MAX_OBJECT);
        let options = GetOptions { range: Some(GetRange::Bounded(range)), ..Default::default() };
        self.read(key, most, options).await
    }

    async fn head(&self, key: &str) -> Result<Option<Meta>, StoreError> {
        match in_time(0, self.store.head(&self.path(key))).await? {
            Ok(meta) => Ok(self.meta(meta)),
            Err(error) => self.absent(&error, None),
        }
    }

    async fn list(&self, prefix: &str, after: Option<&str>) -> Result<Vec<Meta>, StoreError> {
        let folder = prefix.rsplit_once('/').map_or("", |(folder, _)| folder);
        let folder = self.path(folder);
        let mut listed = match after {
            Some(after) => self.store.list_with_offset(Some(&folder), &self.path(after)),
            None => self.store.list(Some(&folder)),
        };
        let mut found = Vec::new();
        // Each page may take its time; their number is unknown.
        loop {
            match in_time(0, listed.try_next()).await? {
                Ok(Some(meta)) => found.extend(self.meta(meta)),
                Ok(None) => break,
                Err(error) => return self.absent(&error, Vec::new()),
            }
        }
        found.retain(|meta: &Meta| meta.key.starts_with(prefix));
        found.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(found)
    }

    async fn folders(&self, folder: &str) -> Result<Vec<String>, StoreError> {
        let folder = self.path(folder);
        let listed = self.store.list_with_delimiter(Some(&folder));
        let listed = match in_time(0, listed).await? {
            Ok(listed) => listed.common_prefixes,
            Err(error) => return self.absent(&error, Vec::new()),
        };
        let mut names: Vec<String> =
            listed.iter().filter_map(|path| Some(path.filename()?.to_string())).collect();
        names.sort();
        Ok(names)
    }

    async fn delete(&self, key: &str) -> Result<(), StoreError> {
        match in_time(0, self.store.delete(&self.path(key))).await? {
            Ok(()) => Ok(()),
            Err(error) => self.absent(&error, ()),
        }
    }
}
