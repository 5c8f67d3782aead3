//! The contract of `Store`, one function for each promise.

use bytes::Bytes;
use vellum_ship::store::{MAX_OBJECT, MemoryStore, PutOutcome, Store, probe};

/// All promises, on a store without objects.
pub(crate) async fn check(store: &dyn Store) {
    creates_once(store).await;
    reads(store).await;
    lists(store).await;
    deletes(store).await;
    takes_large_objects(store).await;
    assert!(probe(store).await.unwrap().deletes);
    let left = store.list("probe/", None).await.unwrap();
    assert_eq!(left, [], "the probe cleans up");
}

async fn creates_once(store: &dyn Store) {
    let body = Bytes::from_static(b"first");
    assert_eq!(store.create("g0/once", body.clone()).await.unwrap(), PutOutcome::Created);
    let other = Bytes::from_static(b"second");
    assert_eq!(store.create("g0/once", other).await.unwrap(), PutOutcome::Exists);
    assert_eq!(store.get("g0/once").await.unwrap(), Some(body));
}

async fn reads(store: &dyn Store) {
    let body = Bytes::from_static(b"0123456789");
    store.create("g0/read", body).await.unwrap();
    let range = |range| async move { store.get_range("g0/read", range).await.unwrap().unwrap() };
    assert_eq!(range(2..5).await, "234");
    assert_eq!(range(8..100).await, "89", "cut at the end");
    assert_eq!(store.head("g0/read").await.unwrap().unwrap().size, 10);
    assert_eq!(store.head("g0/read").await.unwrap().unwrap().key, "g0/read");
    assert_eq!(store.get("g0/absent").await.unwrap(), None);
    assert_eq!(store.get_range("g0/absent", 0..5).await.unwrap(), None);
    assert_eq!(store.head("g0/absent").await.unwrap(), None);
}

async fn lists(store: &dyn Store) {
    let keys = ["g1/t/1-a", "g1/t/2-b", "g1/m/1", "g1-other/t/9", "g2/closed"];
    for key in keys {
        store.create(key, Bytes::from_static(b"x")).await.unwrap();
    }
    assert_eq!(names(store, "g1/", None).await, ["g1/m/1", "g1/t/1-a", "g1/t/2-b"]);
    assert_eq!(names(store, "g1/t/", Some("g1/t/1-a")).await, ["g1/t/2-b"]);
    assert_eq!(names(store, "g1/t/2", None).await, ["g1/t/2-b"], "not only whole folders");
    assert_eq!(names(store, "nothing/", None).await, [""; 0]);
    assert_eq!(store.folders("").await.unwrap(), ["g0", "g1", "g1-other", "g2"]);
    assert_eq!(store.folders("g1").await.unwrap(), ["m", "t"]);
    assert_eq!(store.folders("nothing").await.unwrap(), [""; 0]);
}

async fn names(store: &dyn Store, prefix: &str, after: Option<&str>) -> Vec<String> {
    let listed = store.list(prefix, after).await.unwrap();
    listed.into_iter().map(|meta| meta.key).collect()
}

async fn deletes(store: &dyn Store) {
    store.create("g3/gone", Bytes::from_static(b"x")).await.unwrap();
    store.delete("g3/gone").await.unwrap();
    store.delete("g3/gone").await.unwrap();
    assert_eq!(store.get("g3/gone").await.unwrap(), None);
    let again = store.create("g3/gone", Bytes::from_static(b"y")).await.unwrap();
    assert_eq!(again, PutOutcome::Created, "the key is free again");
}

/// As large as a chunk; a merged object takes long on the slower servers.
async fn takes_large_objects(store: &dyn Store) {
    let body = Bytes::from(vec![7; 16 << 20]);
    assert!((body.len() as u64) < MAX_OBJECT);
    store.create("g4/large", body.clone()).await.unwrap();
    assert!(store.get("g4/large").await.unwrap().unwrap() == body);
}

#[tokio::test]
async fn memory_keeps_the_contract() {
    check(&MemoryStore::new()).await;
}
