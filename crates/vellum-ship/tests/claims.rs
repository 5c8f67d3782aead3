//! Taking a log over while something else happens at the store.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use vellum::{Log, Options};
use vellum_ship::driver::{ShipError, ShipOptions, start};
use vellum_ship::read::{Remote, Restore, Until, restore};
use vellum_ship::store::{MemoryStore, Meta, PutOutcome, Store, StoreError, StoreErrorKind};

type Happens = Box<dyn FnOnce() -> BoxFuture<'static, Result<(), StoreError>> + Send>;

/// A store at which something happens just before the first seal is created.
struct Interrupted {
    inner: Arc<dyn Store>,
    happens: Mutex<Option<Happens>>,
}

impl Interrupted {
    fn new(inner: &Arc<dyn Store>, happens: Happens) -> Arc<dyn Store> {
        Arc::new(Interrupted { inner: Arc::clone(inner), happens: Mutex::new(Some(happens)) })
    }
}

#[async_trait]
impl Store for Interrupted {
    async fn create(&self, key: &str, body: Bytes) -> Result<PutOutcome, StoreError> {
        let happens = key.contains("/t/").then(|| self.happens.lock().unwrap().take()).flatten();
        if let Some(happens) = happens {
            happens().await?;
        }
        self.inner.create(key, body).await
    }

    async fn get(&self, key: &str) -> Result<Option<Bytes>, StoreError> {
        self.inner.get(key).await
    }

    async fn get_range(
        &self,
        key: &str,
        range: std::ops::Range<u64>,
    ) -> Result<Option<Bytes>, StoreError> {
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
        self.inner.delete(key).await
    }
}

struct Place {
    dir: tempfile::TempDir,
    store: Arc<dyn Store>,
}

impl Place {
    fn new() -> Place {
        Place { dir: tempfile::tempdir().unwrap(), store: Arc::new(MemoryStore::new()) }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A log of this name with these records, all of them durable.
    fn fill(&self, name: &str, records: &str) {
        let log = Options::new().open(self.path(name)).unwrap();
        for number in 0..50 {
            log.append(format!("{records} {number}").as_bytes()).unwrap();
        }
        log.sync().unwrap();
    }

    async fn ship(&self, name: &str) -> Result<(), ShipError> {
        ship(&self.path(name), Arc::clone(&self.store), false).await
    }

    async fn take_over(&self, name: &str, store: &Arc<dyn Store>) -> Result<(), ShipError> {
        ship(&self.path(name), Arc::clone(store), true).await
    }

    async fn restore(&self, name: &str) {
        let remote = Remote::open(Arc::clone(&self.store)).await.unwrap();
        let how = Restore { until: Until::End, resume: false, jobs: 2 };
        restore(&remote, &self.path(name), how, &mut |_, _| {}).await.unwrap();
    }

    fn records(&self, name: &str) -> Vec<Vec<u8>> {
        let log = Options::new().create(false).open(self.path(name)).unwrap();
        let mut reader = log.reader(log.begin()).unwrap();
        let mut all = Vec::new();
        while let Some(record) = reader.next().unwrap() {
            all.push(record.payload.to_vec());
        }
        all
    }
}

/// Ships what is durable.
async fn ship(dir: &Path, store: Arc<dyn Store>, take_over: bool) -> Result<(), ShipError> {
    let log: Log = Options::new().create(false).open(dir)?;
    let shipper = log.shipper()?.expect("nobody else ships");
    let options = ShipOptions {
        url: "memory".to_string(),
        once: true,
        interval: Duration::from_secs(1),
        min_interval: Duration::from_secs(1),
        take_over,
        max_unshipped: None,
        in_flight: 4,
    };
    let mut shipping = start(dir, log, shipper, store, options).await?;
    shipping.run(std::future::pending(), |_| {}).await
}

/// Its last request was on its way when the other machine looked.
#[tokio::test]
async fn what_lands_after_the_comparison_is_cut_off() {
    let place = Place::new();
    place.fill("old", "common");
    place.ship("old").await.unwrap();
    place.restore("new").await;
    place.fill("new", "new");
    place.fill("old", "late");
    let (old, inner) = (place.path("old"), Arc::clone(&place.store));
    let lands: Happens = Box::new(move || {
        Box::pin(async move {
            ship(&old, inner, false).await.unwrap();
            Ok(())
        })
    });
    place.take_over("new", &Interrupted::new(&place.store, lands)).await.unwrap();
    place.restore("copy").await;
    assert_eq!(place.records("copy"), place.records("new"));
    let fenced = place.ship("old").await;
    assert!(matches!(fenced, Err(ShipError::Stopped(_))), "{fenced:?}");
}

/// It dies before its seal. When it goes on, the log belongs to somebody else, with whose records
/// it was never compared.
#[tokio::test]
async fn a_take_over_that_died_does_not_win_against_a_later_one() {
    let place = Place::new();
    place.fill("old", "common");
    place.ship("old").await.unwrap();
    place.restore("first").await;
    place.restore("second").await;
    place.fill("first", "first");
    place.fill("second", "second");
    let dies: Happens = Box::new(|| {
        Box::pin(async { Err(StoreError::new(StoreErrorKind::Other, "it dies here".to_string())) })
    });
    place.take_over("first", &Interrupted::new(&place.store, dies)).await.unwrap_err();
    let store = Arc::clone(&place.store);
    place.take_over("second", &store).await.unwrap();
    let lost = place.ship("first").await;
    assert!(matches!(lost, Err(ShipError::Lost)), "{lost:?}");
    place.restore("copy").await;
    assert_eq!(place.records("copy"), place.records("second"));
}
