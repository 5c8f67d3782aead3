//! Directories as stores.

use bytes::Bytes;
use vellum_ship::store::{self, PutOutcome, StoreErrorKind};

use crate::contract;

fn url(directory: &std::path::Path) -> String {
    format!("file://{}", directory.display())
}

#[tokio::test]
async fn a_directory_keeps_the_contract() {
    let directory = tempfile::tempdir().unwrap();
    contract::check(store::open(&url(directory.path())).unwrap().as_ref()).await;
}

#[tokio::test]
async fn a_directory_that_is_missing_is_made_only_on_request() {
    let directory = tempfile::tempdir().unwrap();
    let deeper = directory.path().join("back up");
    let url = url(&deeper).replace(' ', "%20");
    let error = store::open(&url).err().unwrap();
    assert_eq!(error.kind(), StoreErrorKind::NoBucket, "{error}");
    let made = store::open_or_create(&url).unwrap();
    assert_eq!(made.create("log", Bytes::new()).await.unwrap(), PutOutcome::Created);
    assert!(deeper.join("log").exists());
    let error = store::open_or_create(&format!("{url}/too/deep")).err().unwrap();
    assert_eq!(error.kind(), StoreErrorKind::NoBucket, "{error}");
}

#[tokio::test]
async fn what_a_killed_writer_left_is_not_listed() {
    let directory = tempfile::tempdir().unwrap();
    let store = store::open(&url(directory.path())).unwrap();
    store.create("t/0001", Bytes::from_static(b"x")).await.unwrap();
    // The name under which `object_store` writes before it links the object's own.
    std::fs::write(directory.path().join("t/0002#1"), b"half").unwrap();
    let listed = store.list("t/", None).await.unwrap();
    assert_eq!(listed.iter().map(|meta| &meta.key).collect::<Vec<_>>(), ["t/0001"]);
    let created = store.create("t/0002", Bytes::from_static(b"whole")).await.unwrap();
    assert_eq!(created, PutOutcome::Created);
}

#[tokio::test]
async fn an_object_larger_than_any_is_not_read() {
    let directory = tempfile::tempdir().unwrap();
    let file = std::fs::File::create(directory.path().join("huge")).unwrap();
    file.set_len(store::MAX_OBJECT + 1).unwrap();
    let store = store::open(&url(directory.path())).unwrap();
    let error = store.get("huge").await.unwrap_err();
    assert!(error.to_string().contains("no object of a log has more"), "{error}");
    assert!(!error.is_transient());
    assert_eq!(store.get_range("huge", 0..9).await.unwrap().unwrap().len(), 9);
}
