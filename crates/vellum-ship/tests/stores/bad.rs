//! Stores that must not be used, and those that look like them.

use std::ops::Range;
use std::sync::Arc;
use std::sync::Mutex;

use async_trait::async_trait;
use bytes::Bytes;
use vellum_ship::store::{
    FaultStore, Faults, MemoryStore, Meta, PutOutcome, Store, StoreError, StoreErrorKind, probe,
};

/// The fault of a store.
#[derive(Clone, Copy, PartialEq)]
enum Bad {
    /// Writes whether or not the object is there.
    IgnoresCondition,
    /// Keeps the first object, and says that it has created the second.
    LiesAboutTheSecond,
    /// Says that it was there, and replaces it nevertheless.
    SaysExistsAndWrites,
    /// Looks, and then writes.
    ChecksThenWrites,
    /// Keeps a deleted key taken, and hides an object that is created there.
    KeepsDeleteMarkers,
    /// May not delete, which is good.
    RefusesDeletes,
}

struct BadStore {
    inner: MemoryStore,
    bad: Bad,
    deleted: Mutex<Vec<String>>,
}

impl BadStore {
    fn new(bad: Bad) -> BadStore {
        BadStore { inner: MemoryStore::new(), bad, deleted: Mutex::default() }
    }

    async fn replace(&self, key: &str, body: Bytes) -> PutOutcome {
        let before = self.inner.get(key).await.unwrap();
        self.inner.delete(key).await.unwrap();
        self.inner.create(key, body).await.unwrap();
        match self.bad == Bad::SaysExistsAndWrites && before.is_some() {
            true => PutOutcome::Exists,
            false => PutOutcome::Created,
        }
    }
}

#[async_trait]
impl Store for BadStore {
    async fn create(&self, key: &str, body: Bytes) -> Result<PutOutcome, StoreError> {
        match self.bad {
            Bad::IgnoresCondition | Bad::SaysExistsAndWrites => Ok(self.replace(key, body).await),
            Bad::LiesAboutTheSecond => {
                self.inner.create(key, body).await?;
                Ok(PutOutcome::Created)
            }
            Bad::ChecksThenWrites => {
                if self.inner.get(key).await?.is_some() {
                    return Ok(PutOutcome::Exists);
                }
                tokio::task::yield_now().await;
                Ok(self.replace(key, body).await)
            }
            _ => self.inner.create(key, body).await,
        }
    }

    async fn get(&self, key: &str) -> Result<Option<Bytes>, StoreError> {
        if self.deleted.lock().unwrap().iter().any(|deleted| deleted == key) {
            return Ok(None);
        }
        self.inner.get(key).await
    }

    async fn get_range(&self, key: &str, range: Range<u64>) -> Result<Option<Bytes>, StoreError> {
        self.inner.get_range(key, range).await
    }

    async fn head(&self, key: &str) -> Result<Option<Meta>, StoreError> {
        self.inner.head(key).await
    }

    async fn list(&self, prefix: &str, after: Option<&str>) -> Result<Vec<Meta>, StoreError> {
        self.inner.list(prefix, after).await
    }

    async fn folders(&self, folder: &str) -> Result<Vec<String>, StoreError> {
        self.inner.folders(folder).await
    }

    async fn delete(&self, key: &str) -> Result<(), StoreError> {
        match self.bad {
            Bad::RefusesDeletes => Err(StoreError::new(StoreErrorKind::Denied, "append only")),
            Bad::KeepsDeleteMarkers => {
                self.deleted.lock().unwrap().push(key.to_string());
                Ok(())
            }
            _ => self.inner.delete(key).await,
        }
    }
}

async fn refusal(bad: Bad) -> String {
    probe(&BadStore::new(bad)).await.unwrap_err().to_string()
}

#[tokio::test]
async fn stores_in_which_two_can_win_are_refused_by_name() {
    assert!(refusal(Bad::IgnoresCondition).await.contains("replaced an object"));
    assert!(refusal(Bad::LiesAboutTheSecond).await.contains("replaced an object"));
    assert!(refusal(Bad::SaysExistsAndWrites).await.contains("replaced an object"));
    let race = refusal(Bad::ChecksThenWrites).await;
    assert!(race.contains("8 of 8 writers created the same object"), "{race}");
    assert!(refusal(Bad::KeepsDeleteMarkers).await.contains("is not there"));
}

#[tokio::test]
async fn credentials_that_may_not_delete_are_good() {
    assert!(!probe(&BadStore::new(Bad::RefusesDeletes)).await.unwrap().deletes);
}

/// A store with faults is a good store: whatever the seed, it is never refused for two winners.
#[tokio::test]
async fn a_good_store_with_faults_is_never_called_bad() {
    let mut passed = 0;
    for seed in 0..300 {
        let faults = Faults { seed, rate: 5, ..Default::default() };
        let store = FaultStore::new(Arc::new(MemoryStore::new()), faults);
        match probe(&store).await {
            Ok(_) => passed += 1,
            Err(error) => assert!(error.is_transient(), "seed {seed}: {error}"),
        }
    }
    assert!(passed > 250, "{passed} of 300 seeds passed");
}
