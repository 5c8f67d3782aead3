//! One request of `decide`, done until it has an answer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use tokio::task::spawn_blocking;
use vellum::ship::{LogShape, ShipFault, ShipStatus, Shipper};
use vellum::{Layout, Lsn};
use vellum_ship_figures::Figures;

use super::ShipError;
use super::local;
use super::options::ShipOptions;
use super::trouble::Trouble;
use crate::decide::{Answer, Ask};
use crate::object::{self, BadObject, Built, HEADER_BYTES, Header, Key, Kind, merged_prefix};
use crate::pool::{Buffer, Pool};
use crate::store::{PutOutcome, Store, StoreError, StoreErrorKind};

const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// Tries where a user waits for the command to end.
const TRIES_ONCE: u32 = 6;

/// Does requests.
pub(super) struct Requests {
    pub(super) store: Arc<dyn Store>,
    pub(super) shipper: Arc<Shipper>,
    pub(super) log_id: [u8; 16],
    /// The capacity of a segment.
    pub(super) segment_bytes: u64,
    pub(super) is_text: bool,
    /// Whether to give up after a while.
    pub(super) is_once: bool,
    /// For the bytes of chunks.
    pub(super) pool: Pool,
    /// Where the next chunk is compressed: one at a time, so that the number of buffers is known.
    spare: Arc<Mutex<Buffer>>,
    /// Whether records were lost that were not shipped.
    has_gap: AtomicBool,
    /// For everybody who has the log open.
    figures: Mutex<Figures>,
    /// What was said of a store that takes no requests.
    trouble: Mutex<Trouble>,
    note: fn(&str),
}

/// A chunk that is to be created.
#[allow(clippy::large_enum_variant, reason = "there are few of them at a time")]
pub(super) enum Body {
    /// The bytes of the log, behind room for a header.
    Raw(Buffer),
    /// All of it, as it was sent at least once.
    Object(Built),
}

impl Body {
    /// The object, which is made when it is needed first.
    async fn object(
        &mut self,
        header: Header,
        spare: &Arc<Mutex<Buffer>>,
    ) -> Result<Built, ShipError> {
        let nothing = Body::Object(Built { header, bytes: Bytes::new() });
        let built = match std::mem::replace(self, nothing) {
            Body::Object(built) => built,
            Body::Raw(raw) => {
                let spare = Arc::clone(spare);
                blocking(move || {
                    let mut spare = spare.lock().unwrap_or_else(PoisonError::into_inner);
                    Ok(object::build_in(header, raw, &mut spare))
                })
                .await?
            }
        };
        *self = Body::Object(built.clone());
        Ok(built)
    }
}

/// The time now, in nanoseconds since 1970.
pub(super) fn now() -> u64 {
    nanos(SystemTime::now())
}

/// A moment, in nanoseconds since 1970.
pub(super) fn nanos(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

impl Requests {
    /// Requests with buffers for the chunks in flight, and the one that comes next.
    pub(super) async fn new(
        store: Arc<dyn Store>,
        shipper: Shipper,
        shape: &LogShape,
        options: &ShipOptions,
    ) -> Requests {
        let pool = local::pool(options.in_flight + 2);
        let spare = Arc::new(Mutex::new(pool.take().await));
        // They may be of another version, or cannot be read: counting begins anew.
        let figures = Mutex::new(Figures::read(|| shipper.figures()).unwrap_or_default());
        let (shipper, has_gap) = (Arc::new(shipper), AtomicBool::new(false));
        let (log_id, segment_bytes) = (shape.log_id().to_bytes(), shape.segment_capacity_bytes());
        let is_text = shape.layout() == Layout::Text;
        let (is_once, note, trouble) = (options.once, options.note, Mutex::default());
        Requests {
            store,
            shipper,
            log_id,
            segment_bytes,
            is_text,
            is_once,
            pool,
            spare,
            has_gap,
            figures,
            trouble,
            note,
        }
    }

    /// Changes the figures that others see. Shipping does not fail where they cannot be stored.
    pub(super) fn note(&self, change: impl FnOnce(&mut Figures)) {
        let mut figures = self.figures.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut figures);
        let _ = self.shipper.set_figures(&figures.to_bytes());
    }

    /// Does one thing. `body` is the chunk that is to be created.
    pub(super) async fn answer(
        &self,
        ask: Ask,
        body: Option<&mut Body>,
    ) -> Result<Answer, ShipError> {
        Ok(match ask {
            Ask::List(generation) => Answer::Listed(self.names(&merged_prefix(generation)).await?),
            Ask::Look(key) => Answer::Saw(self.header(key).await?),
            Ask::Marks(key) => Answer::Marks(self.marks(key).await?),
            Ask::Create(header) => Answer::Created(self.create(header, body).await?),
            Ask::Local { start, end } => {
                let shipper = Arc::clone(&self.shipper);
                Answer::Local(blocking(move || local::link(&shipper, start, end)).await?)
            }
            Ask::Save => unreachable!("the driver stores its state itself"),
        })
    }

    /// The names of objects below a prefix.
    pub(super) async fn names(&self, prefix: &str) -> Result<Vec<Key>, ShipError> {
        let listed = self.patiently(|| self.store.list(prefix, None)).await?;
        Ok(listed.iter().filter_map(|meta| object::parse(&meta.key)).collect())
    }

    async fn header(&self, key: Key) -> Result<Option<Header>, ShipError> {
        let range = 0..HEADER_BYTES as u64;
        let name = key.to_string();
        let bytes = self.patiently(|| self.store.get_range(&name, range.clone())).await?;
        bytes.map(|bytes| self.decoded(&name, &bytes)).transpose()
    }

    fn decoded(&self, key: &str, bytes: &[u8]) -> Result<Header, ShipError> {
        let header = Header::decode(bytes).and_then(|header| match header.log_id == self.log_id {
            true => Ok(header),
            false => Err(BadObject::NotOurs),
        });
        header.map_err(|fault| ShipError::Object { key: key.to_string(), fault })
    }

    async fn marks(&self, key: Key) -> Result<Option<(Header, Vec<object::Mark>)>, ShipError> {
        let Some(header) = self.header(key).await? else { return Ok(None) };
        let name = key.to_string();
        let range = 0..object::table_end(&header);
        let bytes = self.patiently(|| self.store.get_range(&name, range.clone())).await?;
        let marks = bytes.map(|bytes| object::marks(&header, &bytes)).transpose();
        let marks = marks.map_err(|fault| ShipError::Object { key: name, fault })?;
        Ok(marks.map(|marks| (header, marks)))
    }

    async fn create(&self, draft: Header, body: Option<&mut Body>) -> Result<bool, ShipError> {
        let header = Header { log_id: self.log_id, time: now(), ..draft };
        let Built { header, bytes } = match body {
            Some(body) => body.object(header, &self.spare).await?,
            None => small(header),
        };
        let name = header.key().expect("it belongs to a generation").to_string();
        let outcome = self.patiently(|| self.store.create(&name, bytes.clone())).await?;
        self.note(|figures| {
            figures.puts += 1;
            figures.sent_bytes += bytes.len() as u64;
            // Merged bytes were shipped before.
            figures.log_bytes += if header.kind == Kind::Merged { 0 } else { header.raw_bytes };
        });
        Ok(outcome == PutOutcome::Created)
    }

    /// Shows that records were lost.
    pub(super) fn set_gap(&self, start: u64, end: u64) -> Result<(), ShipError> {
        self.shipper.set_gap(Lsn::new(start), Lsn::new(end))?;
        self.has_gap.store(true, Ordering::Relaxed);
        self.set_well()
    }

    /// Shows that shipping runs.
    pub(super) fn set_well(&self) -> Result<(), ShipError> {
        let has_gap = self.has_gap.load(Ordering::Relaxed);
        let status = if has_gap { ShipStatus::Gap } else { ShipStatus::Running };
        Ok(self.shipper.set_status(status, None)?)
    }

    /// Says why requests are repeated, where it is time to.
    fn say_trouble(&self, error: &StoreError) {
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        trouble.line(Instant::now(), error).iter().for_each(|line| (self.note)(line));
    }

    /// Repeats a request until it succeeds or fails for good. Every process that has the log open
    /// can see the failure.
    pub(super) async fn patiently<T, F>(
        &self,
        mut request: impl FnMut() -> F,
    ) -> Result<T, ShipError>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        let mut wait = FIRST_WAIT;
        for attempt in 1_u32.. {
            let error = match request().await {
                Ok(done) if attempt == 1 => return Ok(done),
                Ok(done) => {
                    self.set_well()?;
                    return Ok(done);
                }
                Err(error) => error,
            };
            let may_heal =
                matches!(error.kind(), StoreErrorKind::Transient | StoreErrorKind::Denied);
            self.shipper.set_status(ShipStatus::Retrying, Some((fault(&error), 0)))?;
            if !may_heal || self.is_once && attempt == TRIES_ONCE {
                return Err(error.into());
            }
            self.say_trouble(&error);
            self.note(|figures| figures.retries += 1);
            tokio::time::sleep(jittered(wait)).await;
            wait = (wait * 2).min(LONGEST_WAIT);
        }
        unreachable!("it is tried again for ever")
    }
}

/// Between a half and the whole: many shippers do not come back at once.
fn jittered(wait: Duration) -> Duration {
    let share = now() % 1000;
    wait / 2 + wait * u32::try_from(share).unwrap_or(0) / 2000
}

fn fault(error: &StoreError) -> ShipFault {
    match error.kind() {
        StoreErrorKind::Transient => ShipFault::Unreachable,
        StoreErrorKind::Denied => ShipFault::Denied,
        StoreErrorKind::NoBucket => ShipFault::Missing,
        _ => ShipFault::Store,
    }
}

/// An object without bytes of the log.
fn small(header: Header) -> Built {
    match header.kind {
        Kind::Gap => object::gap(header),
        Kind::Seal => object::seal(header),
        Kind::Closed => object::closed(header),
        kind => unreachable!("{kind:?} is not made of nothing"),
    }
}

/// Runs what blocks beside what does not.
pub(super) async fn blocking<T: Send + 'static>(
    run: impl FnOnce() -> Result<T, ShipError> + Send + 'static,
) -> Result<T, ShipError> {
    spawn_blocking(run).await.map_err(|error| ShipError::Io(error.into()))?
}
