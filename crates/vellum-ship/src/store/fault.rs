//! A store that fails by a seed, for tests: `VELLUM_SHIP_FAULTS=seed:7,rate:20`. A release build
//! takes the latency alone, for `vellum-ship bench`.
//!
//! It has the faults of networks and servers: errors before and after a request was done, requests
//! that are done long after their error, 409 for an object that is not there, short reads, lists
//! that are late, and answers that take their time.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::Mutex;

use super::{Meta, PutOutcome, Store, StoreError, StoreErrorKind};

/// The faults of a store, and how often they happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// The same seed and the same order of requests give the same faults.
    pub seed: u64,
    /// How many of a hundred requests fail.
    pub rate: u64,
    /// How long each request takes at least.
    pub latency: Duration,
}

/// The variable of the environment that asks for faults.
const VARIABLE: &str = "VELLUM_SHIP_FAULTS";

impl Faults {
    /// Reads `seed:7,rate:20,latency:50ms`, in any order, each perhaps missing.
    pub fn parse(text: &str) -> Option<Faults> {
        let mut faults = Faults::default();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once([':', '='])?;
            match name {
                "seed" => faults = Faults { seed: value.parse().ok()?, ..faults.or_usual_rate() },
                "rate" => faults.rate = value.parse().ok().filter(|rate| *rate <= 100)?,
                "latency" => {
                    let milliseconds = value.strip_suffix("ms")?.parse().ok()?;
                    faults.latency = Duration::from_millis(milliseconds);
                }
                _ => return None,
            }
        }
        Some(faults)
    }

    /// A caller that gives a seed wants faults.
    fn or_usual_rate(self) -> Faults {
        Faults { rate: if self.rate == 0 { 10 } else { self.rate }, ..self }
    }
}

/// A fault of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    Before,
    After,
    /// An error now; done before one of the requests that follow.
    Late,
    /// 409, which looks like an object that is there.
    Conflict,
    /// Half of the requested bytes.
    Short,
    /// A list without what is newest.
    Stale,
}

const KINDS: [Fault; 6] =
    [Fault::Before, Fault::After, Fault::Late, Fault::Conflict, Fault::Short, Fault::Stale];

/// Another store, whose requests fail by a seed.
pub struct FaultStore {
    inner: Arc<dyn Store>,
    faults: Faults,
    requests: AtomicU64,
    /// Creates that were answered with an error and are still on their way.
    late: Mutex<Vec<(String, Bytes)>>,
}

impl FaultStore {
    /// The store with faults.
    pub fn new(inner: Arc<dyn Store>, faults: Faults) -> FaultStore {
        FaultStore { inner, faults, requests: AtomicU64::new(0), late: Mutex::default() }
    }

    /// The store itself, or with the faults that the environment asks for.
    pub(super) fn from_environment(
        inner: Arc<dyn Store>,
        environment: &[(String, String)],
    ) -> Result<Arc<dyn Store>, StoreError> {
        let Some((_, text)) = environment.iter().find(|(name, _)| name == VARIABLE) else {
            return Ok(inner);
        };
        match Faults::parse(text) {
            Some(faults) if faults.rate > 0 && !cfg!(debug_assertions) => {
                let text = format!("{VARIABLE}={text}: only a debug build fails on purpose");
                Err(StoreError::new(StoreErrorKind::Other, text))
            }
            Some(faults) => Ok(Arc::new(FaultStore::new(inner, faults))),
            None => {
                let text = format!("{VARIABLE}={text}: not seed:N,rate:PERCENT,latency:Nms");
                Err(StoreError::new(StoreErrorKind::Other, text))
            }
        }
    }

    /// How many requests were made.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Waits as long as a request takes, lets late requests arrive, and returns the fault.
    async fn begin(&self) -> Fault {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        if !self.faults.latency.is_zero() {
            tokio::time::sleep(self.faults.latency).await;
        }
        let random = mix(self.faults.seed ^ mix(number));
        if random & 3 == 0 {
            self.land().await;
        }
        if (random >> 8) % 100 >= self.faults.rate {
            return Fault::None;
        }
        KINDS[((random >> 32) % KINDS.len() as u64) as usize]
    }

    /// Carries out the oldest create that is on its way; its outcome goes nowhere.
    async fn land(&self) {
        let oldest = {
            let mut late = self.late.lock().await;
            (!late.is_empty()).then(|| late.remove(0))
        };
        if let Some((key, body)) = oldest {
            let _ = self.inner.create(&key, body).await;
        }
    }

    /// A request that reads: it fails or is done.
    async fn reading<T>(
        &self,
        request: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<(Fault, T), StoreError> {
        match self.begin().await {
            Fault::Before | Fault::After | Fault::Late => Err(lost()),
            fault => Ok((fault, request.await?)),
        }
    }
}

fn lost() -> StoreError {
    StoreError::new(StoreErrorKind::Transient, "a fault that the test asked for")
}

/// splitmix64.
pub(super) fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[async_trait]
impl Store for FaultStore {
    async fn create(&self, key: &str, body: Bytes) -> Result<PutOutcome, StoreError> {
        match self.begin().await {
            Fault::Before => Err(lost()),
            Fault::Late => {
                self.late.lock().await.push((key.to_string(), body));
                Err(lost())
            }
            Fault::After => self.inner.create(key, body).await.and_then(|_| Err(lost())),
            Fault::Conflict => Ok(PutOutcome::Exists),
            Fault::None | Fault::Short | Fault::Stale => self.inner.create(key, body).await,
        }
    }

    async fn get(&self, key: &str) -> Result<Option<Bytes>, StoreError> {
        let (fault, body) = self.reading(self.inner.get(key)).await?;
        Ok(body.map(|body| short(fault, body)))
    }

    async fn get_range(&self, key: &str, range: Range<u64>) -> Result<Option<Bytes>, StoreError> {
        let (fault, body) = self.reading(self.inner.get_range(key, range)).await?;
        Ok(body.map(|body| short(fault, body)))
    }

    async fn head(&self, key: &str) -> Result<Option<Meta>, StoreError> {
        Ok(self.reading(self.inner.head(key)).await?.1)
    }

    async fn list(&self, prefix: &str, after: Option<&str>) -> Result<Vec<Meta>, StoreError> {
        let (fault, mut list) = self.reading(self.inner.list(prefix, after)).await?;
        if fault == Fault::Stale {
            list.truncate(list.len() / 2);
        }
        Ok(list)
    }

    async fn folders(&self, folder: &str) -> Result<Vec<String>, StoreError> {
        Ok(self.reading(self.inner.folders(folder)).await?.1)
    }

    async fn delete(&self, key: &str) -> Result<(), StoreError> {
        match self.begin().await {
            Fault::Before | Fault::Late => Err(lost()),
            Fault::After => self.inner.delete(key).await.and_then(|()| Err(lost())),
            _ => self.inner.delete(key).await,
        }
    }
}

fn short(fault: Fault, body: Bytes) -> Bytes {
    if fault == Fault::Short { body.slice(..body.len() / 2) } else { body }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::MemoryStore;

    #[test]
    fn faults_are_read_from_text() {
        let faults = Faults::parse("seed:7,rate=20,latency:50ms").unwrap();
        let latency = Duration::from_millis(50);
        assert_eq!(faults, Faults { seed: 7, rate: 20, latency });
        assert_eq!(Faults::parse("latency:5ms").unwrap().rate, 0);
        assert_eq!(Faults::parse("seed:1").unwrap().rate, 10);
        for bad in ["seed", "rate:101", "latency:5", "sed:1"] {
            assert_eq!(Faults::parse(bad), None, "{bad}");
        }
    }

    /// The outcome of each request of a run.
    async fn run(seed: u64) -> Vec<String> {
        let faults = Faults { seed, rate: 50, latency: Duration::ZERO };
        let store = FaultStore::new(Arc::new(MemoryStore::new()), faults);
        let mut came = Vec::new();
        for number in 0..200 {
            let key = format!("k{}", number % 20);
            came.push(format!("{:?}", store.create(&key, Bytes::from_static(b"body")).await));
            came.push(format!("{:?}", store.get(&key).await));
            came.push(format!("{:?}", store.list("", None).await.map(|list| list.len())));
        }
        came
    }

    #[tokio::test]
    async fn a_seed_gives_the_same_faults_again_and_all_kinds_of_them() {
        let came = run(1).await;
        assert_eq!(came, run(1).await);
        assert_ne!(came, run(2).await);
        let has = |wanted: &str| came.iter().any(|came| came == wanted);
        assert!(has("Ok(Created)") && has("Ok(Exists)") && has("Ok(Some(b\"body\"))"));
        // An object that is there although no reply said that it was created; a conflict without
        // one.
        assert!(has("Ok(Some(b\"bo\"))"), "a short read");
        assert!(came.windows(2).any(|pair| pair[0] == "Ok(Exists)" && pair[1] == "Ok(None)"));
    }
}
