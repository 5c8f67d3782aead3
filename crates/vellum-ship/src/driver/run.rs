//! The loop of a shipper.

mod keep;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt, future::BoxFuture};
use tokio::task::JoinHandle;
use vellum::Lsn;

use super::ShipError;
use super::local::{Cut, cut};
use super::options::ShipOptions;
use super::requests::{Body, Requests, blocking};
use super::rotate::Rotate;
use super::start::note_stop;
use super::state::State;
use super::upkeep::{KeepOptions, Kept, Upkeep};
use crate::decide::{Answer, Ask, Owner, Point, Saved};
use crate::pool::CHUNK_BYTES;

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
    requests: Arc<Requests>,
    options: ShipOptions,
    state: State,
    owner: Owner,
    bodies: HashMap<Point, Body>,
    next: Next,
    durable: u64,
    /// When the last chunk was begun.
    begun: Option<Instant>,
    /// When what was appended was made durable last.
    synced: Option<Instant>,
    /// The position that others were told is shipped.
    told: Option<u64>,
    /// The position that is stored.
    stored: u64,
    is_storing: bool,
    /// Something else than the position is to be stored.
    is_changed: bool,
    /// Callers that wait until the current state is stored.
    saves: Vec<Point>,
    waiter: Option<JoinHandle<()>>,
    upkeep: Upkeep,
    keep: KeepOptions,
    rotate: Rotate,
    /// Where a generation was found not to be able to begin.
    not_here: u64,
}

/// The chunk that comes next: it is read while others are in flight.
enum Next {
    Nothing,
    Cutting,
    /// The cut from this position on waits for a place.
    Ready(u64, Cut),
    /// It cannot be read. Everything before it is shipped all the same.
    Failed(ShipError),
}

/// A finished task.
#[allow(clippy::large_enum_variant, reason = "there are few of them at a time")]
enum Done {
    Cut(u64, Result<Cut, ShipError>),
    Answer(Point, Answer, Option<Body>),
    Stored(u64, Vec<Point>),
    Kept(Kept),
    Rotated(Box<(State, Saved)>),
}

type Work = BoxFuture<'static, Result<Done, ShipError>>;

impl Shipping {
    pub(super) async fn new(
        requests: Requests,
        options: ShipOptions,
        mut state: State,
        saved: &Saved,
    ) -> Result<Shipping, Box<(Requests, ShipError)>> {
        state.set_saved(saved);
        state.complete(saved);
        let prepared = async {
            state.store(&requests.shipper).await?;
            requests.shipper.hold(Lsn::new(saved.point.lsn), options.max_unshipped)?;
            requests.note(|figures| figures.generation = u64::from(saved.generation));
            requests.set_well()
        };
        if let Err(error) = prepared.await {
            return Err(Box::new((requests, error)));
        }
        let has_gaps = options.max_unshipped.is_some();
        let owner = Owner::new(saved, options.in_flight, has_gaps);
        let upkeep = Upkeep::new(keep::merger(&state, saved, requests.segment_bytes));
        Ok(Shipping {
            requests: Arc::new(requests),
            options,
            state,
            owner,
            bodies: HashMap::new(),
            next: Next::Nothing,
            durable: 0,
            begun: None,
            synced: None,
            told: None,
            stored: saved.point.lsn,
            is_storing: false,
            is_changed: false,
            saves: Vec::new(),
            waiter: None,
            upkeep,
            keep: KeepOptions::default(),
            rotate: Rotate::Not,
            not_here: 0,
        })
    }

    /// Begins generations, and deletes old ones.
    pub fn keep(&mut self, keep: KeepOptions) {
        self.keep = keep;
    }

    /// Ships until `stop` is ready and all chunks in flight have landed; with
    /// [`once`](ShipOptions::once) until everything is shipped that was durable at the beginning:
    /// in a log that is not staged, every record whose append had returned.
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
        // It has the log open for a second more: a text log that is not closed has NULs at its
        // end. Closing a framed log writes a commit record, which would have to be shipped.
        if self.requests.is_text
            && let Some(waiter) = self.waiter.take()
        {
            let _ = waiter.await;
        }
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
        let mut flight = FuturesUnordered::<Work>::new();
        // Work that may be dropped at any moment. Deleting may take long.
        let mut keeping = FuturesUnordered::<Work>::new();
        if self.options.once {
            let requests = Arc::clone(&self.requests);
            blocking(move || Ok(requests.shipper.sync()?)).await?;
        }
        self.look().await?;
        let target = self.durable;
        loop {
            let is_done = self.options.once && self.owner.shipped().lsn >= target;
            let is_ending = is_stopping || is_done || matches!(self.next, Next::Failed(_));
            self.plan_rotate(is_stopping);
            if !is_ending && self.rotate == Rotate::Not {
                self.place()?;
                flight.extend(self.cut_next());
            }
            flight.extend(std::iter::from_fn(|| self.work_next()));
            self.settle(report)?;
            flight.extend(self.store_next());
            if !is_stopping {
                keeping.extend(self.keep_next());
                let is_idle = flight.is_empty() && keeping.is_empty();
                flight.extend(is_idle.then(|| self.rotate_next()).flatten());
            }
            if is_ending && flight.is_empty() && (is_stopping || keeping.is_empty()) {
                return self.end();
            }
            tokio::select! {
                () = &mut stop, if !is_stopping => is_stopping = true,
                Some(done) = flight.next() => self.take(done?),
                Some(done) = keeping.next(), if !is_stopping => self.take(done?),
                () = self.pause(), if !is_stopping => {}
            }
            self.look().await?;
        }
    }

    fn end(&mut self) -> Result<(), ShipError> {
        match std::mem::replace(&mut self.next, Next::Nothing) {
            Next::Failed(error) => Err(error),
            _ => Ok(()),
        }
    }

    /// Reads the durable end; now and then commits the records of a log without commits.
    async fn look(&mut self) -> Result<(), ShipError> {
        if self.synced.is_none_or(|synced| synced.elapsed() >= self.rhythm(self.durable)) {
            self.synced = Some(Instant::now());
            let requests = Arc::clone(&self.requests);
            blocking(move || Ok(requests.shipper.durable()?)).await?;
        }
        self.set_durable(self.requests.shipper.durable_so_far()?.get());
        Ok(())
    }

    fn set_durable(&mut self, durable: u64) {
        self.durable = durable;
        self.owner.set_local(self.requests.shipper.begin().get(), durable);
    }

    /// How often a step is done for the chunk that begins at a position.
    fn rhythm(&self, start: u64) -> Duration {
        let is_wanted = self.requests.shipper.wanted().get() > start;
        match is_wanted {
            true => self.options.min_interval.min(self.options.interval),
            false => self.options.interval,
        }
    }

    /// Begins the chunk that was read, if there is a place for it.
    fn place(&mut self) -> Result<(), ShipError> {
        let Next::Ready(start, _) = self.next else { return Ok(()) };
        let is_next = self.owner.coming_start() == Some(start);
        if is_next && self.owner.next_start().is_none() {
            return Ok(());
        }
        match std::mem::replace(&mut self.next, Next::Nothing) {
            Next::Ready(_, Cut::Lost(end)) if is_next => self.lose(start, end),
            Next::Ready(_, Cut::Chunk(link, raw)) if is_next && link.end <= self.durable => {
                let at = self.owner.push_chunk(link);
                self.bodies.insert(at, Body::Raw(raw));
                Ok(())
            }
            // The log was cut, or the store has another chunk there.
            _ => Ok(()),
        }
    }

    /// Reads the next chunk, if there is a reason.
    fn cut_next(&mut self) -> Option<Work> {
        let start = self.owner.coming_start().filter(|start| self.is_due(*start))?;
        if !matches!(self.next, Next::Nothing) {
            return None;
        }
        self.next = Next::Cutting;
        self.begun = Some(Instant::now());
        let requests = Arc::clone(&self.requests);
        Some(Box::pin(async move {
            let buffer = requests.pool.take().await;
            let cut = blocking(move || cut(&requests.shipper, start, buffer)).await;
            Ok(Done::Cut(start, cut))
        }))
    }

    /// Where the next chunk may begin, if it is less than whole: it grows until there is a place
    /// for it, and until what was shipped is stored. Its waiters commit again meanwhile.
    fn free_start(&self) -> Option<u64> {
        let is_free = matches!(self.next, Next::Nothing) && !self.is_storing;
        self.owner.next_start().filter(|_| is_free)
    }

    /// Whole chunks are read ahead.
    fn is_due(&self, start: u64) -> bool {
        let unshipped = self.durable.saturating_sub(start);
        let has_place = self.free_start().is_some();
        let since = self.begun.map_or(Duration::MAX, |begun| begun.elapsed());
        let is_time = self.options.once || since >= self.rhythm(start);
        unshipped >= CHUNK_BYTES as u64 || unshipped > 0 && has_place && is_time
    }

    fn lose(&mut self, start: u64, end: u64) -> Result<(), ShipError> {
        self.owner.set_local(end, self.durable.max(end));
        self.owner.push_gap(end);
        self.requests.set_gap(start, end)
    }

    /// Begins the next thing that is to be done.
    fn work_next(&mut self) -> Option<Work> {
        let mut job = self.owner.poll()?;
        while job.ask == Ask::Save {
            self.saves.push(job.at);
            job = self.owner.poll()?;
        }
        let requests = Arc::clone(&self.requests);
        let mut body = match job.ask {
            Ask::Create(_) => self.bodies.remove(&job.at),
            _ => None,
        };
        Some(Box::pin(async move {
            let answer = requests.answer(job.ask, body.as_mut()).await?;
            Ok(Done::Answer(job.at, answer, body))
        }))
    }

    fn take(&mut self, done: Done) {
        match done {
            Done::Cut(start, Ok(cut)) => {
                if let Cut::Chunk(link, _) = &cut {
                    // Bytes that were read are durable.
                    self.set_durable(self.durable.max(link.end));
                }
                self.next = Next::Ready(start, cut);
            }
            Done::Cut(_, Err(error)) => self.next = Next::Failed(error),
            Done::Answer(at, answer, body) => {
                if let (Answer::Created(true), Some(Body::Object(built))) = (&answer, &body) {
                    self.upkeep.note(built.header);
                }
                if answer == Answer::Created(false) {
                    // It may have to be created again.
                    self.bodies.extend(body.map(|body| (at, body)));
                }
                self.owner.answer(at, answer);
            }
            Done::Stored(lsn, saves) => {
                self.is_storing = false;
                self.stored = lsn;
                saves.into_iter().for_each(|at| self.owner.answer(at, Answer::Saved));
            }
            Done::Kept(kept) => {
                self.is_changed |= !matches!(kept, Kept::Saw(_));
                self.upkeep.take(kept, self.keep.note);
            }
            Done::Rotated(rotated) => self.go_on(*rotated),
        }
    }

    /// Tells what is shipped.
    fn settle(&mut self, report: &mut impl FnMut(Report)) -> Result<(), ShipError> {
        if let Some(stop) = self.owner.stop() {
            return Err(ShipError::Stopped(stop));
        }
        let shipped = self.owner.shipped().lsn;
        self.bodies.retain(|at, _| at.lsn >= shipped);
        // After a restart it is known when everything that is there was looked at.
        let is_known = self.owner.coming_start().is_some() && shipped <= self.durable;
        if is_known && self.told != Some(shipped) {
            self.requests.shipper.set_shipped(Lsn::new(shipped))?;
            self.requests.note(|figures| figures.shipped_at = Some(SystemTime::now()));
            self.told = Some(shipped);
        }
        let generation = self.owner.generation();
        report(Report { shipped, durable: self.durable, generation });
        Ok(())
    }

    /// Stores what is known, and then lets the local log go, if there is something new: once for
    /// all that has come while it was stored the last time.
    fn store_next(&mut self) -> Option<Work> {
        let saved = self.owner.saved();
        let lsn = saved.point.lsn;
        let is_further = lsn != self.stored;
        if self.is_storing || !is_further && self.saves.is_empty() && !self.is_changed {
            return None;
        }
        (self.is_storing, self.is_changed) = (true, false);
        self.state.set_saved(&saved);
        self.state.set_merge(self.upkeep.merge_from());
        let state = self.state.to_bytes();
        let (requests, saves) = (Arc::clone(&self.requests), std::mem::take(&mut self.saves));
        let store = move || {
            requests.shipper.save(&state)?;
            if is_further {
                requests.shipper.release(Lsn::new(lsn))?;
            }
            Ok(Done::Stored(lsn, saves))
        };
        Some(Box::pin(blocking(store)))
    }

    /// Until there may be something to do.
    async fn pause(&mut self) {
        let from = self.free_start().unwrap_or(self.durable);
        let is_behind = from < self.durable;
        let rest = match self.begun.filter(|_| is_behind) {
            Some(begun) => self.rhythm(from).saturating_sub(begun.elapsed()),
            None => LOOK,
        };
        if is_behind && self.requests.shipper.wanted().get() > from {
            return tokio::time::sleep(rest).await;
        }
        // It cannot be stopped, so there is one at a time: its position is never far from the
        // position to wait for now.
        let waiter = self.waiter.get_or_insert_with(|| {
            let requests = Arc::clone(&self.requests);
            let wait = move || requests.shipper.wait(Lsn::new(from), rest.min(LOOK));
            tokio::task::spawn_blocking(wait)
        });
        tokio::select! {
            _ = waiter => self.waiter = None,
            () = tokio::time::sleep(rest.min(LOOK)) => {}
        }
    }
}
