//! Logs that are shipped in this process, and a store whose creates are watched.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use vellum::ship::Shipper;
use vellum::{Create, ErrorKind, Log, Lsn, Options, Tuning};
use vellum_ship::driver::{ShipError, ShipOptions, start};
use vellum_ship::read::{Remote, Restore, Until, restore};
use vellum_ship::store::{MemoryStore, Meta, PutOutcome, Store, StoreError, StoreErrorKind};

/// The outcome of a create that is not carried out.
pub(crate) type Instead = Option<Result<PutOutcome, StoreError>>;

/// Sees every create before it is done. It may do something first, or answer instead.
type Watch = dyn Fn(&str, &Bytes) -> BoxFuture<'static, Instead> + Send + Sync;

struct Watched {
    inner: Arc<dyn Store>,
    watch: Box<Watch>,
}

/// The store, with something that happens before each create.
pub(crate) fn watched(
    inner: &Arc<dyn Store>,
    watch: impl Fn(&str, &Bytes) -> BoxFuture<'static, Instead> + Send + Sync + 'static,
) -> Arc<dyn Store> {
    Arc::new(Watched { inner: Arc::clone(inner), watch: Box::new(watch) })
}

/// An answer that is known at once.
pub(crate) fn answered(instead: Instead) -> BoxFuture<'static, Instead> {
    Box::pin(async { instead })
}

/// An error that no patience heals.
pub(crate) fn broken() -> Result<PutOutcome, StoreError> {
    Err(StoreError::new(StoreErrorKind::Other, "it breaks here"))
}

/// Whether this is the name of a chunk, a gap or a seal.
pub(crate) fn is_link(key: &str) -> bool {
    key.contains("/t/")
}

#[async_trait]
impl Store for Watched {
    async fn create(&self, key: &str, body: Bytes) -> Result<PutOutcome, StoreError> {
        match (self.watch)(key, &body).await {
            Some(instead) => instead,
            None => self.inner.create(key, body).await,
        }
    }

    async fn get(&self, key: &str) -> Result<Option<Bytes>, StoreError> {
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
        self.inner.delete(key).await
    }
}

/// Logs, and the store they are shipped to.
pub(crate) struct Place {
    dir: tempfile::TempDir,
    pub(crate) store: Arc<dyn Store>,
}

impl Place {
    pub(crate) fn new() -> Place {
        Place { dir: tempfile::tempdir().unwrap(), store: Arc::new(MemoryStore::new()) }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A log of this name, in which segments are small.
    pub(crate) fn log(&self, name: &str) -> Log {
        Options::default()
            .tuning(Tuning::new().segment_capacity_bytes(64 << 10))
            .open(self.path(name))
            .unwrap()
    }

    /// Appends records of this text, and commits.
    pub(crate) fn fill(&self, name: &str, records: &str) {
        let log = self.log(name);
        for number in 0..50 {
            log.append(format!("{records} {number}").as_bytes()).unwrap();
        }
        log.sync().unwrap();
    }

    /// Appends enough for several chunks.
    pub(crate) fn fill_segments(&self, name: &str) {
        let log = self.log(name);
        for number in 0..300 {
            log.append(format!("{number:1000}").as_bytes()).unwrap();
        }
        log.sync().unwrap();
    }

    /// Removes all records from a position on.
    pub(crate) async fn truncate(&self, name: &str, from: Lsn) {
        loop {
            match self.log(name).truncate(from) {
                // The shipper before has not released it.
                Err(error) if error.kind() == ErrorKind::Busy => {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                done => return done.unwrap(),
            }
        }
    }

    pub(crate) async fn ship(&self, name: &str) -> Result<(), ShipError> {
        self.ship_to(name, &self.store).await
    }

    pub(crate) async fn ship_to(
        &self,
        name: &str,
        store: &Arc<dyn Store>,
    ) -> Result<(), ShipError> {
        ship(&self.path(name), Arc::clone(store), options(false)).await
    }

    pub(crate) async fn take_over(
        &self,
        name: &str,
        store: &Arc<dyn Store>,
    ) -> Result<(), ShipError> {
        ship(&self.path(name), Arc::clone(store), options(true)).await
    }

    pub(crate) async fn restore(&self, name: &str) {
        let remote = Remote::open(Arc::clone(&self.store)).await.unwrap();
        let how = Restore { until: Until::End, resume: false, jobs: 2, file_link: false };
        restore(&remote, &self.path(name), how, &mut |_, _| {}).await.unwrap();
    }

    pub(crate) fn records(&self, name: &str) -> Vec<Vec<u8>> {
        let log = Options::default().create(Create::Never).open(self.path(name)).unwrap();
        let mut reader = log.reader(log.begin()).unwrap();
        let mut all = Vec::new();
        while let Some(record) = reader.next().unwrap() {
            all.push(record.payload.to_vec());
        }
        all
    }

    /// The names of all objects.
    pub(crate) async fn names(&self) -> Vec<String> {
        let listed = self.store.list("", None).await.unwrap();
        listed.into_iter().map(|meta| meta.key).collect()
    }

    /// The state that a shipper would read after a crash.
    pub(crate) fn state(&self, name: &str) -> serde_json::Value {
        state(&self.path(name))
    }
}

pub(crate) fn state(dir: &Path) -> serde_json::Value {
    let text = std::fs::read(dir.join("ship")).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

pub(crate) fn options(take_over: bool) -> ShipOptions {
    ShipOptions {
        url: "memory".to_string(),
        once: true,
        interval: Duration::from_secs(1),
        min_interval: Duration::from_secs(1),
        take_over,
        max_unshipped: None,
        in_flight: 4,
        note: |_| {},
    }
}

/// A thread of the shipper before may still wait for records.
async fn right_to_ship(log: &Log) -> Shipper {
    loop {
        match log.ship().elect().unwrap() {
            Some(shipper) => return shipper,
            None => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
}

/// Ships what is durable.
pub(crate) async fn ship(
    dir: &Path,
    store: Arc<dyn Store>,
    options: ShipOptions,
) -> Result<(), ShipError> {
    let log = Options::default().create(Create::Never).open(dir)?;
    let shipper = right_to_ship(&log).await;
    let mut shipping = start(log, shipper, store, options).await?;
    shipping.run(std::future::pending(), |_| {}).await
}
