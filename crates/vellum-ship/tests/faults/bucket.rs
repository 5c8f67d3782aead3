//! A bucket in memory that speaks S3. It keeps the contract, and takes no object without a
//! condition.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use bytes::Bytes;
use futures_util::TryStreamExt;
use s3s::dto::{
    CommonPrefix, DeleteObjectsInput, DeleteObjectsOutput, DeletedObject, GetObjectInput,
    GetObjectOutput, HeadObjectInput, HeadObjectOutput, ListObjectsV2Input, ListObjectsV2Output,
    Object, PutObjectInput, PutObjectOutput, StreamingBlob, Timestamp,
};
use s3s::{Body, S3, S3Request, S3Response, S3Result, s3_error};

/// Names in one answer to a list, so that lists have pages.
const PAGE: usize = 7;

/// A mark on a request: the list is one of a moment ago.
#[derive(Clone, Copy)]
pub(crate) struct Stale;

#[derive(Clone)]
struct Stored {
    bytes: Bytes,
    time: SystemTime,
}

/// Objects by their names.
#[derive(Clone, Default)]
pub(crate) struct Bucket(Arc<Mutex<BTreeMap<String, Stored>>>);

impl Bucket {
    fn get(&self, key: &str) -> S3Result<Stored> {
        let found = self.0.lock().unwrap().get(key).cloned();
        found.ok_or_else(|| s3_error!(NoSuchKey, "it is not there"))
    }

    /// Names behind `after`, those in folders as the folder; and whether there are more.
    fn page(&self, prefix: &str, delimiter: &str, after: &str) -> (Vec<String>, bool) {
        let names = self.0.lock().unwrap();
        let folded = names.keys().filter_map(|key| {
            let rest = key.strip_prefix(prefix)?;
            let end = rest.find(delimiter).filter(|_| !delimiter.is_empty());
            Some(end.map_or(key.clone(), |end| key[..=prefix.len() + end].to_string()))
        });
        let all: BTreeSet<String> = folded.filter(|name| name.as_str() > after).collect();
        let is_more = all.len() > PAGE;
        (all.into_iter().take(PAGE).collect(), is_more)
    }

    fn object(&self, key: String) -> Option<Object> {
        let stored = self.get(&key).ok()?;
        Some(Object {
            size: Some(stored.bytes.len() as i64),
            last_modified: Some(Timestamp::from(stored.time)),
            e_tag: Some("\"it never changes\"".to_string()),
            key: Some(key),
            ..Default::default()
        })
    }
}

#[async_trait::async_trait]
impl S3 for Bucket {
    async fn put_object(
        &self,
        request: S3Request<PutObjectInput>,
    ) -> S3Result<S3Response<PutObjectOutput>> {
        let input = request.input;
        if input.if_none_match.as_deref() != Some("*") {
            return Err(s3_error!(AccessDenied, "objects are created and never replaced"));
        }
        let chunks: Vec<Bytes> = match input.body {
            Some(body) => body.try_collect().await.map_err(|_| s3_error!(IncompleteBody))?,
            None => Vec::new(),
        };
        let stored = Stored { bytes: chunks.concat().into(), time: SystemTime::now() };
        let mut names = self.0.lock().unwrap();
        if names.contains_key(&input.key) {
            return Err(s3_error!(PreconditionFailed, "it is there"));
        }
        names.insert(input.key, stored);
        Ok(S3Response::new(PutObjectOutput {
            e_tag: Some("\"it never changes\"".to_string()),
            ..Default::default()
        }))
    }

    async fn get_object(
        &self,
        request: S3Request<GetObjectInput>,
    ) -> S3Result<S3Response<GetObjectOutput>> {
        let Stored { bytes, time } = self.get(&request.input.key)?;
        let length = bytes.len() as u64;
        let (part, content_range) = match request.input.range {
            None => (bytes, None),
            Some(range) => {
                let range = range.check(length).map_err(|_| s3_error!(InvalidRange))?;
                let text = format!("bytes {}-{}/{length}", range.start, range.end - 1);
                (bytes.slice(range.start as usize..range.end as usize), Some(text))
            }
        };
        Ok(S3Response::new(GetObjectOutput {
            content_length: Some(part.len() as i64),
            content_range,
            last_modified: Some(Timestamp::from(time)),
            e_tag: Some("\"it never changes\"".to_string()),
            body: Some(StreamingBlob::from(Body::from(part))),
            ..Default::default()
        }))
    }

    async fn head_object(
        &self,
        request: S3Request<HeadObjectInput>,
    ) -> S3Result<S3Response<HeadObjectOutput>> {
        let stored = self.get(&request.input.key)?;
        Ok(S3Response::new(HeadObjectOutput {
            content_length: Some(stored.bytes.len() as i64),
            last_modified: Some(Timestamp::from(stored.time)),
            e_tag: Some("\"it never changes\"".to_string()),
            ..Default::default()
        }))
    }

    async fn list_objects_v2(
        &self,
        request: S3Request<ListObjectsV2Input>,
    ) -> S3Result<S3Response<ListObjectsV2Output>> {
        let is_stale = request.extensions.get::<Stale>().is_some();
        let input = request.input;
        let after = input.continuation_token.clone().or(input.start_after.clone());
        let delimiter = input.delimiter.clone().unwrap_or_default();
        let prefix = input.prefix.clone().unwrap_or_default();
        let (mut names, mut is_more) = self.page(&prefix, &delimiter, &after.unwrap_or_default());
        if is_stale {
            names.truncate(names.len() / 2);
            is_more = false;
        }
        let last = names.last().cloned().filter(|_| is_more);
        let is_folder = |name: &String| !delimiter.is_empty() && name.ends_with(&delimiter);
        let (folders, keys): (Vec<String>, Vec<String>) = names.into_iter().partition(is_folder);
        let folder = |name| CommonPrefix { prefix: Some(name) };
        Ok(S3Response::new(ListObjectsV2Output {
            is_truncated: Some(is_more),
            next_continuation_token: last,
            key_count: Some((folders.len() + keys.len()) as i32),
            common_prefixes: Some(folders.into_iter().map(folder).collect()),
            contents: Some(keys.into_iter().filter_map(|key| self.object(key)).collect()),
            name: Some(input.bucket),
            prefix: input.prefix,
            delimiter: input.delimiter,
            ..Default::default()
        }))
    }

    async fn delete_objects(
        &self,
        request: S3Request<DeleteObjectsInput>,
    ) -> S3Result<S3Response<DeleteObjectsOutput>> {
        let mut names = self.0.lock().unwrap();
        let objects = request.input.delete.objects.into_iter();
        let deleted = objects.map(|object| {
            names.remove(&object.key);
            DeletedObject { key: Some(object.key), ..Default::default() }
        });
        let deleted = Some(deleted.collect());
        Ok(S3Response::new(DeleteObjectsOutput { deleted, ..Default::default() }))
    }
}
