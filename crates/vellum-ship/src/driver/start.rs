//! Beginning to ship: the owner of the store, and where to continue.

use std::sync::Arc;

use vellum::ship::{LogShape, ShipFault, ShipStatus, Shipper};
use vellum::{ErrorKind, Log, Lsn, Position};

use super::ShipError;
use super::fork;
use super::options::ShipOptions;
use super::requests::{Requests, now};
use super::run::Shipping;
use super::state::State;
use crate::decide::{Claim, Claimed, Intent, Point, Resume, Resumed, Saved, Stop};
use crate::object::{Identity, LOG};
use crate::read::Remote;
use crate::store::{self, Store};

/// The needs of a start.
struct Starting {
    log: Log,
    requests: Requests,
    options: ShipOptions,
    shape: LogShape,
}

/// Begins to ship a log with this right to do so.
///
/// When it returns, the store is this log's, the local log keeps records that are not shipped, and
/// nothing has been shipped yet.
///
/// # Errors
///
/// [`ShipError::NotOwner`], [`ShipError::AnotherLog`], [`ShipError::AnotherUrl`],
/// [`ShipError::Stopped`] where the store or the local log does not fit; and the errors of store
/// and log.
pub async fn start(
    log: Log,
    shipper: Shipper,
    store: Arc<dyn Store>,
    options: ShipOptions,
) -> Result<Shipping, ShipError> {
    let shape = log.ship().shape()?;
    let requests = Requests::new(store, shipper, &shape, &options).await;
    Starting { log, requests, options, shape }.begin().await
}

impl Starting {
    async fn begin(self) -> Result<Shipping, ShipError> {
        let known = State::load(&self.requests.shipper).await?;
        let state = match known {
            Some(state) if state.log_id == self.shape.log_id().to_string() => state,
            // A copy that became another log.
            _ => self.new_state(),
        };
        if state.url != self.options.url && !self.options.take_over {
            return Err(ShipError::AnotherUrl(state.url));
        }
        let state = match state.url == self.options.url || self.has_log().await? {
            true => State { url: self.options.url.clone(), ..state },
            // The state of the other URL is of no use here.
            false => self.new_state(),
        };
        let outcome = self.begin_with(state).await;
        outcome.map_err(|failed| {
            let (requests, error) = *failed;
            note_stop(&requests.shipper, &error);
            error
        })
    }

    /// With an error comes what tells others of it.
    async fn begin_with(self, mut state: State) -> Result<Shipping, Box<(Requests, ShipError)>> {
        let saved = match self.saved(&mut state).await {
            Ok(saved) => saved,
            Err(error) => return Err(Box::new((self.requests, error))),
        };
        let Starting { requests, options, shape, .. } = self;
        state.epoch = shape.epoch();
        Shipping::new(requests, options, state, &saved).await
    }

    /// Whether there is a log in the store.
    async fn has_log(&self) -> Result<bool, ShipError> {
        let store = &self.requests.store;
        Ok(self.requests.patiently(|| store.get(LOG)).await?.is_some())
    }

    fn new_state(&self) -> State {
        State {
            version: 1,
            url: self.options.url.clone(),
            log_id: self.shape.log_id().to_string(),
            epoch: self.shape.epoch(),
            origin: format!("{:032x}", nonce()),
            owned: None,
            claim: None,
            upkeep: None,
        }
    }

    async fn saved(&self, state: &mut State) -> Result<Saved, ShipError> {
        let remote = self.identify(state).await?;
        // A claim that did not end is finished first: its seal may be there. Its knowledge of the
        // local log may be outdated, so the epoch is checked all the same.
        let saved = match (state.intent(), state.saved()) {
            (Some(intent), _) => self.claim(state, &remote, intent).await?,
            (None, None) => return self.first(state, &remote).await,
            (None, Some(_)) if self.options.take_over => {
                return self.take_over(state, &remote, 0).await;
            }
            (None, Some(saved)) => saved,
        };
        let position = Position {
            log: self.shape.log_id(),
            epoch: state.epoch,
            lsn: Lsn::new(saved.point.lsn),
        };
        if let Err(error) = self.log.reader_at_next(position)
            && error.kind() == ErrorKind::Rewound
        {
            let differs = error.lsn().map_or(0, Lsn::get);
            return self.after_rewind(state, &remote, saved, differs).await;
        }
        self.resume(saved).await
    }

    /// Reads which log is in the store; makes the object if this log may.
    async fn identify(&self, state: &mut State) -> Result<Remote, ShipError> {
        let store = &self.requests.store;
        let found = self.requests.patiently(|| store.get(LOG)).await?;
        if found.is_none() {
            if state.owned.is_some() {
                return Err(ShipError::Gone);
            }
            store::probe(self.requests.store.as_ref()).await?;
            // Stored first, so that this log knows its own object after a crash.
            state.store(&self.requests.shipper).await?;
            let bytes = self.identity(state);
            self.requests.patiently(|| store.create(LOG, bytes.clone())).await?;
        }
        let remote = Remote::open(Arc::clone(store)).await?;
        match remote.identity().log_id == state.log_id {
            true => Ok(remote),
            false => Err(ShipError::AnotherLog(remote.identity().log_id.clone())),
        }
    }

    fn identity(&self, state: &State) -> bytes::Bytes {
        let shape = self.shape.to_bytes();
        let identity = Identity {
            log_id: state.log_id.clone(),
            layout: format!("{:?}", self.shape.layout()).to_lowercase(),
            segment_bytes: self.shape.segment_capacity_bytes(),
            shape: shape.iter().map(|byte| format!("{byte:02x}")).collect(),
            begin: self.requests.shipper.begin().get(),
            time: now(),
        };
        let origin = u128::from_str_radix(&state.origin, 16).unwrap_or_default();
        identity.encode(self.shape.log_id().to_bytes(), origin)
    }

    /// The first time that this directory ships.
    async fn first(&self, state: &mut State, remote: &Remote) -> Result<Saved, ShipError> {
        let origin = u128::from_str_radix(&state.origin, 16).unwrap_or_default();
        if remote.nonce() == origin {
            let point = remote.from();
            let saved = Saved { generation: 0, nonce: origin, point, flights: Vec::new() };
            state.begin_generation(&saved);
            return Ok(saved);
        }
        match self.options.take_over {
            true => self.take_over(state, remote, 0).await,
            false => Err(ShipError::NotOwner),
        }
    }

    /// Begins a generation where the local log and the store part.
    async fn take_over(
        &self,
        state: &mut State,
        remote: &Remote,
        trusted: u64,
    ) -> Result<Saved, ShipError> {
        let plan = remote.plan().await?;
        let fork = fork::find(&self.requests, &plan, trusted).await?;
        let intent = Intent::take_over(nonce(), plan.generation, fork);
        self.begin_claim(state, remote, intent).await
    }

    /// The log was cut, or lost its end, at `differs` or behind it since the position was stored.
    async fn after_rewind(
        &self,
        state: &mut State,
        remote: &Remote,
        saved: Saved,
        differs: u64,
    ) -> Result<Saved, ShipError> {
        let plan = remote.plan().await?;
        if plan.generation != saved.generation {
            return Err(ShipError::Stopped(Stop::Fenced { at: saved.point.lsn }));
        }
        let fork = fork::find(&self.requests, &plan, differs).await?;
        if fork >= saved.point.lsn {
            return self.resume(saved).await;
        }
        let intent = Intent::go_back(nonce(), saved.generation, fork);
        self.begin_claim(state, remote, intent).await
    }

    /// Claims what the log of this epoch was compared with.
    async fn begin_claim(
        &self,
        state: &mut State,
        remote: &Remote,
        intent: Intent,
    ) -> Result<Saved, ShipError> {
        state.epoch = self.shape.epoch();
        self.claim(state, remote, intent).await
    }

    async fn claim(
        &self,
        state: &mut State,
        remote: &Remote,
        intent: Intent,
    ) -> Result<Saved, ShipError> {
        state.set_claim(Some(intent));
        state.store(&self.requests.shipper).await?;
        let Point { lsn, chain } = remote.from();
        let mut claim = Claim::new(intent, 0, Point { lsn, chain });
        while let Some(ask) = claim.ask() {
            claim.answer(self.requests.answer(ask, None).await?);
        }
        // Won or lost, it is over.
        state.set_claim(None);
        match claim.outcome() {
            Some(Claimed::Won { saved, .. }) => {
                state.begin_generation(&saved);
                state.store(&self.requests.shipper).await?;
                Ok(saved)
            }
            Some(Claimed::Failed(trouble)) => Err(trouble.into()),
            outcome => {
                state.store(&self.requests.shipper).await?;
                // It still owns its generation, and continues in it.
                if let (Some(Claimed::Moved), Some(saved)) = (outcome, state.saved()) {
                    return Ok(saved);
                }
                Err(ShipError::Lost)
            }
        }
    }

    async fn resume(&self, saved: Saved) -> Result<Saved, ShipError> {
        let mut resume = Resume::new(saved);
        while let Some(ask) = resume.ask() {
            resume.answer(self.requests.answer(ask, None).await?);
        }
        match resume.outcome() {
            Resumed::At(saved) => Ok(saved),
            Resumed::Stopped(stop) => Err(ShipError::Stopped(stop)),
        }
    }
}

/// Shows to all processes that have the log open why nothing is shipped.
pub(super) fn note_stop(shipper: &Shipper, error: &ShipError) {
    let (status, fault) = match error {
        ShipError::Stopped(Stop::Fenced { .. }) | ShipError::Lost => (ShipStatus::Fenced, None),
        ShipError::Stopped(Stop::Diverged { .. }) => (ShipStatus::Diverged, None),
        ShipError::Log(_) | ShipError::Io(_) | ShipError::State(_) => {
            (ShipStatus::None, Some((ShipFault::Local, 0)))
        }
        _ => return,
    };
    // It is told anyway.
    let _ = shipper.set_status(status, fault);
}

/// A number that was never used.
pub(super) fn nonce() -> u128 {
    let mut bytes = [0; 16];
    let got = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    assert_eq!(got, Ok(bytes.len()), "the kernel gives sixteen random bytes at once");
    u128::from_le_bytes(bytes)
}
