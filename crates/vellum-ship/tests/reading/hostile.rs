//! Changed objects: no wrong byte is ever restored without an error.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use vellum::{Layout, Options};
use vellum_ship::object::{self, BadObject, HEADER_BYTES, Header};
use vellum_ship::read::{ReadError, Remote, Restore, Until, restore};
use vellum_ship::store::{MemoryStore, Meta, PutOutcome, Store, StoreError};

use crate::hand::{Hand, append, log, objects, records};

const ALL: Restore = Restore { until: Until::End, resume: false, jobs: 4, file_link: false };

/// A store with these objects.
async fn store_of(objects: &[(String, Bytes)]) -> Arc<dyn Store> {
    let store = MemoryStore::new();
    for (key, body) in objects {
        store.create(key, body.clone()).await.unwrap();
    }
    Arc::new(store)
}

/// A log with chunks, a merged object, a seal and a second generation.
async fn shipped(dir: &std::path::Path) -> (Hand, Vec<(u64, Vec<u8>)>) {
    let log = log(dir, Layout::Framed);
    append(&log, 40);
    let mut hand = Hand::begin(&log).await;
    hand.ship(2000).await;
    hand.merge(0, 2).await;
    let end = hand.at;
    hand.seal(end.lsn).await;
    append(&log, 10);
    hand.ship(2000).await;
    (hand, records(&log))
}

async fn restored(store: Arc<dyn Store>, to: &std::path::Path) -> Result<(), ReadError> {
    let remote = Remote::open(store).await?;
    restore(&remote, to, ALL, &mut |_, _| {}).await.map(drop)
}

/// Any byte of any object is flipped: the log is whole, or an error names the damage. A chunk that
/// a merged object covers is not needed.
#[tokio::test]
async fn a_flipped_byte_is_an_error_or_not_needed() {
    let dir = tempfile::tempdir().unwrap();
    let (hand, expected) = shipped(&dir.path().join("log")).await;
    let all = objects(hand.store.as_ref()).await;
    let mut refused = 0;
    for (number, (key, body)) in all.iter().enumerate() {
        let places = (0..body.len()).step_by(body.len() / 12 + 1).chain([body.len() - 1]);
        for (round, place) in places.enumerate() {
            let mut objects = all.clone();
            let mut bytes = body.to_vec();
            bytes[place] ^= 0x10;
            objects[number].1 = bytes.into();
            let copy = dir.path().join(format!("copy {number} {round}"));
            match restored(store_of(&objects).await, &copy).await {
                Ok(()) => {
                    let log = Options::default().open(&copy).unwrap();
                    assert!(records(&log) == expected, "{key} at {place}");
                }
                Err(error) => {
                    assert!(error.is_damage(), "{key} at {place}: {error}");
                    refused += 1;
                }
            }
        }
    }
    assert!(refused > 30, "{refused}");
}

/// A removed object makes the log shorter only if it is its last one. A store that loses objects
/// can do that; the chain that `stat` printed reveals it.
#[tokio::test]
async fn a_removed_object_is_an_error_unless_it_is_the_last() {
    let dir = tempfile::tempdir().unwrap();
    let (hand, _) = shipped(&dir.path().join("log")).await;
    let all = objects(hand.store.as_ref()).await;
    let whole = Remote::open(store_of(&all).await).await.unwrap().plan().await.unwrap();
    for (number, (key, _)) in all.iter().enumerate() {
        let mut objects = all.clone();
        objects.remove(number);
        let store = store_of(&objects).await;
        match Remote::open(store).await {
            Err(error) => assert!(matches!(error, ReadError::NoLog), "{key}: {error}"),
            Ok(remote) => match remote.plan().await {
                Ok(plan) => assert!(plan.end.lsn <= whole.end.lsn, "{key}"),
                Err(error) => assert!(error.is_damage(), "{key}: {error}"),
            },
        }
    }
}

/// An object that unpacks to more than it says is refused before it is unpacked.
#[test]
fn a_body_that_grows_is_refused() {
    let content = vec![0; 1 << 20];
    let link = object::Link { start: 0, end: 100, file: None, content: object::hash(&content) };
    let before = object::Hash::default();
    let draft = Header::draft(object::Kind::Chunk, 0, before, link);
    let built = object::build(draft, &content);
    assert!(built.header.zstd && built.bytes.len() < 1000);
    let refused = object::open(&built.bytes).unwrap_err();
    assert!(matches!(
        refused,
        BadObject::Range | BadObject::TooLarge | BadObject::Content | BadObject::Short
    ));
}

/// Flags of later versions, encryption above all, are refused and never ignored.
#[test]
fn flags_that_are_not_known_are_refused() {
    let link = object::Link { start: 0, end: 3, file: None, content: object::hash(b"abc") };
    let draft = Header::draft(object::Kind::Chunk, 0, object::Hash::default(), link);
    let mut bytes = object::build(draft, b"abc").bytes.to_vec();
    bytes[18] |= 1;
    let crc = crc32c::crc32c(&bytes[..HEADER_BYTES - 4]).to_le_bytes();
    bytes[HEADER_BYTES - 4..HEADER_BYTES].copy_from_slice(&crc);
    assert!(matches!(object::open(&bytes.into()), Err(BadObject::Flags(_))));
}

/// Objects of another log below the same URL.
#[tokio::test]
async fn objects_of_another_log_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (hand, _) = shipped(&dir.path().join("log")).await;
    let (other, _) = shipped(&dir.path().join("other")).await;
    let mut all = objects(hand.store.as_ref()).await;
    let foreign = objects(other.store.as_ref()).await;
    let first = all.iter().position(|(key, _)| key.contains("/m/")).unwrap();
    all[first].1 = foreign.iter().find(|(key, _)| key.contains("/m/")).unwrap().1.clone();
    let error = restored(store_of(&all).await, &dir.path().join("copy")).await.unwrap_err();
    assert!(error.is_damage(), "{error}");
}

/// A store that gives another good object when the whole one is fetched than when its header was.
struct Swapping(Arc<dyn Store>, String, String);

#[async_trait]
impl Store for Swapping {
    async fn create(&self, key: &str, body: Bytes) -> Result<PutOutcome, StoreError> {
        self.0.create(key, body).await
    }
    async fn get(&self, key: &str) -> Result<Option<Bytes>, StoreError> {
        self.0.get(if key == self.1 { &self.2 } else { key }).await
    }
    async fn get_range(
        &self,
        key: &str,
        range: std::ops::Range<u64>,
    ) -> Result<Option<Bytes>, StoreError> {
        self.0.get_range(key, range).await
    }
    async fn head(&self, key: &str) -> Result<Option<Meta>, StoreError> {
        self.0.head(key).await
    }
    async fn list(&self, prefix: &str, after: Option<&str>) -> Result<Vec<Meta>, StoreError> {
        self.0.list(prefix, after).await
    }
    async fn folders(&self, folder: &str) -> Result<Vec<String>, StoreError> {
        self.0.folders(folder).await
    }
    async fn delete(&self, key: &str) -> Result<(), StoreError> {
        self.0.delete(key).await
    }
}

#[tokio::test]
async fn an_object_that_is_another_one_than_planned_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let log = log(&dir.path().join("log"), Layout::Framed);
    append(&log, 100);
    let mut hand = Hand::begin(&log).await;
    hand.ship(2000).await;
    let key = |at: usize| hand.chunks[at].0.key().unwrap().to_string();
    let store = Swapping(Arc::clone(&hand.store), key(1), key(2));
    let error = restored(Arc::new(store), &dir.path().join("copy")).await.unwrap_err();
    assert!(error.to_string().contains(&key(1)), "{error}");
}

/// An object of the store claims a longer gap than any log has held.
#[tokio::test]
async fn a_gap_without_end_is_refused_before_anything_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let log = log(&dir.path().join("log"), Layout::Framed);
    append(&log, 40);
    let mut hand = Hand::begin(&log).await;
    hand.ship(2000).await;
    hand.lose_up_to(1 << 53).await;
    let copy = dir.path().join("copy");
    let error = restored(Arc::clone(&hand.store), &copy).await.unwrap_err();
    assert!(error.to_string().contains("restore what is before it"), "{error}");
    assert!(!copy.exists());
    let remote = Remote::open(hand.store).await.unwrap();
    let before = Until::Position(hand.chunks.last().unwrap().0.end);
    let restored = restore(&remote, &copy, Restore { until: before, ..ALL }, &mut |_, _| {}).await;
    assert_eq!(restored.unwrap().gaps, []);
}

/// Of a text log, positions without a file take no room.
#[tokio::test]
async fn a_gap_in_a_text_log_takes_no_room() {
    let dir = tempfile::tempdir().unwrap();
    let log = log(&dir.path().join("log"), Layout::Text);
    append(&log, 40);
    let mut hand = Hand::begin(&log).await;
    hand.ship(2000).await;
    hand.lose_up_to(1 << 53).await;
    restored(hand.store, &dir.path().join("copy")).await.unwrap();
}

/// The texts of a store are shown to people.
#[tokio::test]
async fn a_log_with_the_id_of_another_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (hand, _) = shipped(&dir.path().join("log")).await;
    let mut all = objects(hand.store.as_ref()).await;
    let place = all.iter().position(|(key, _)| key == object::LOG).unwrap();
    let (identity, header, _) = object::Identity::decode(&all[place].1).unwrap();
    let forged = object::Identity { log_id: "\u{1b}[31m".to_string(), ..identity };
    all[place].1 = forged.encode(header.log_id, header.nonce);
    let error = Remote::open(store_of(&all).await).await.err().unwrap();
    assert!(error.is_damage(), "{error}");
}
