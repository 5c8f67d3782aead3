//! The loop of a shipper.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use vellum::{Lsn, ShipStatus};

use super::ShipError;
use super::local::{CHUNK_BYTES, Cut, cut};
use super::requests::{Requests, blocking};
use super::start::{ShipOptions, note_stop};
use super::state::State;
use crate::decide::{Answer, Ask, Job, Owner, Point, Saved};

/// How often the loop looks around where nothing wakes it.
const LOOK: Duration = Duration::from_secs(1);

/// How far shipping is.
#[derive(Clone, Copy, Debug)]
pub struct Report {
    /// Everything before this is in the store.
    pub shipped: u64,
    /// Everything before this is durable here.
    pub durable: u64,
    /// The generation.
    pub generation: u32,
}

/// A shipper at work.
pub struct Shipping {
    dir: PathBuf,
    requests: Arc<Requests>,
    options: ShipOptions,
    state: State,
    owner: Owner,
    bodies: HashMap<Point, Bytes>,
    durable: u64,
    begun: Option<Instant>,
    stored: u64,
}

type Done = Result<(Point, Answer), ShipError>;

impl Shipping {
    pub(super) fn new(
        dir: PathBuf,
        requests: Requests,
        options: ShipOptions,
        mut state: State,
        saved: &Saved,
    ) -> Result<Shipping, (Requests, ShipError)> {
        let prepared = (|| {
            state.set_saved(saved);
            state.store(&dir)?;
            requests.shipper.hold(Lsn::new(saved.point.lsn), options.max_unshipped)?;
            requests.shipper.set_generation(u64::from(saved.generation));
            requests.shipper.set_status(ShipStatus::Running, None)?;
            Ok(())
        })();
        if let Err(error) = prepared {
            return Err((requests, error));
        }
        let has_gaps = options.max_unshipped.is_some();
        let owner = Owner::new(saved, options.in_flight, has_gaps);
        Ok(Shipping {
            dir,
            requests: Arc::new(requests),
            options,
            state,
            owner,
            bodies: HashMap::new(),
            durable: 0,
            begun: None,
            stored: saved.point.lsn,
        })
    }

    /// Ships until `stop` is ready and what is in flight has landed; with
    /// [`once`](ShipOptions::once) until everything is shipped that was durable at the beginning.
    ///
    /// # Errors
    ///
    /// [`ShipError::Stopped`] if another one has the log or the histories differ; errors of the
    /// store that do not heal, and of the local log.
    pub async fn run(
        &mut self,
        stop: impl Future<Output = ()>,
        mut report: impl FnMut(Report),
    ) -> Result<(), ShipError> {
        let outcome = self.ship(stop, &mut report).await;
        if let Err(error) = &outcome {
            note_stop(&self.requests.shipper, error);
        }
        outcome
    }

    async fn ship(
        &mut self,
        stop: impl Future<Output = ()>,
        report: &mut impl FnMut(Report),
    ) -> Result<(), ShipError> {
        let mut stop = std::pin::pin!(stop.fuse());
        let mut is_stopping = false;
        let mut flight = FuturesUnordered::new();
        self.look().await?;
        let target = self.durable;
        loop {
            if !is_stopping {
                self.push().await?;
            }
            while let Some(job) = self.owner.poll() {
                match job.ask {
                    Ask::Save => {
                        self.store()?;
                        self.answer((job.at, Answer::Saved));
                    }
                    _ => flight.push(self.work(job)),
                }
            }
            self.settle(report)?;
            let is_done = self.options.once && self.owner.shipped().lsn >= target;
            if (is_stopping || is_done) && flight.is_empty() {
                return self.store();
            }
            tokio::select! {
                () = &mut stop, if !is_stopping => is_stopping = true,
                Some(done) = flight.next() => { let done: Done = done; self.answer(done?) }
                () = self.pause(), if !is_stopping => {}
            }
            self.look().await?;
        }
    }

    /// Learns what is durable.
    async fn look(&mut self) -> Result<(), ShipError> {
        let requests = Arc::clone(&self.requests);
        let (begin, durable) = blocking(move || {
            let durable = requests.shipper.durable()?;
            Ok((requests.shipper.begin().get(), durable.get()))
        })
        .await?;
        self.durable = durable;
        self.owner.set_local(begin, durable);
        Ok(())
    }

    /// Begins chunks while there are places for them and reasons.
    async fn push(&mut self) -> Result<(), ShipError> {
        while let Some(start) = self.owner.next_start() {
            if start >= self.durable || !self.is_due(start) {
                return Ok(());
            }
            let requests = Arc::clone(&self.requests);
            match blocking(move || cut(&requests.shipper, start)).await? {
                Cut::Nothing => return Ok(()),
                Cut::Lost(end) => self.lose(start, end)?,
                Cut::Chunk(link, raw) => {
                    // What `cut` saw may be durable since.
                    self.look().await?;
                    let at = self.owner.push_chunk(link);
                    self.bodies.insert(at, raw.into());
                }
            }
            self.begun = Some(Instant::now());
        }
        Ok(())
    }

    fn is_due(&self, start: u64) -> bool {
        let since = self.begun.map_or(Duration::MAX, |begun| begun.elapsed());
        let is_wanted = self.requests.shipper.wanted().get() > start;
        let is_much = self.durable - start >= CHUNK_BYTES as u64;
        is_much
            || self.options.once
            || since >= self.options.interval
            || is_wanted && since >= self.options.min_interval
    }

    fn lose(&mut self, start: u64, end: u64) -> Result<(), ShipError> {
        self.owner.set_local(end, self.durable.max(end));
        self.owner.push_gap(end);
        self.requests.shipper.set_gap(Lsn::new(start), Lsn::new(end))?;
        Ok(self.requests.shipper.set_status(ShipStatus::Gap, None)?)
    }

    fn work(&self, job: Job) -> impl Future<Output = Done> + 'static {
        let requests = Arc::clone(&self.requests);
        let raw = self.bodies.get(&job.at).cloned();
        async move { Ok((job.at, requests.answer(job.ask, raw).await?)) }
    }

    fn answer(&mut self, (at, answer): (Point, Answer)) {
        self.owner.answer(at, answer);
    }

    /// Tells what is shipped, and lets the local log go after it is stored.
    fn settle(&mut self, report: &mut impl FnMut(Report)) -> Result<(), ShipError> {
        if let Some(stop) = self.owner.stop() {
            return Err(ShipError::Stopped(stop));
        }
        let shipped = self.owner.shipped().lsn;
        self.bodies.retain(|at, _| at.lsn >= shipped);
        if shipped != self.stored {
            self.requests.shipper.set_shipped(Lsn::new(shipped))?;
            self.store()?;
            self.requests.shipper.release(Lsn::new(shipped))?;
        }
        let generation = self.owner.generation();
        report(Report { shipped, durable: self.durable, generation });
        Ok(())
    }

    fn store(&mut self) -> Result<(), ShipError> {
        let saved = self.owner.saved();
        self.stored = saved.point.lsn;
        self.state.set_saved(&saved);
        self.state.store(&self.dir)
    }

    /// Until there may be something to do.
    async fn pause(&self) {
        let requests = Arc::clone(&self.requests);
        let from = self.owner.next_start().unwrap_or(self.durable);
        let is_wanted = requests.shipper.wanted().get() > from;
        let rhythm = if is_wanted { self.options.min_interval } else { self.options.interval };
        let rest = match self.begun.filter(|_| from < self.durable) {
            Some(begun) => rhythm.saturating_sub(begun.elapsed()),
            None => LOOK,
        };
        if is_wanted && from < self.durable {
            return tokio::time::sleep(rest).await;
        }
        let _ = tokio::task::spawn_blocking(move || {
            requests.shipper.wait(Lsn::new(from), rest.min(LOOK));
        })
        .await;
    }
}
