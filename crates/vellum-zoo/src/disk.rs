//! The disk of an animal: its medium and cache, its times, its faults, and its figures.

use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use anyhow::ensure;
use rustix::io::Errno;

use crate::animal::traits::Traits;
use crate::pace::{Kind, Operation};
use crate::served::{Request, Served};
use crate::store::{BLOCK_LEN, Cut, Store};

/// The work that a disk has done, by its own clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Of reads.
    pub reads: Tally,
    /// Of writes.
    pub writes: Tally,
    /// Of flushes.
    pub flushes: Tally,
    /// Requests that came while an earlier one had to wait.
    pub overlapping: u64,
}

/// The figures of one kind of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Requests.
    pub count: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// How many failed.
    pub failed: u64,
    /// The time that they had to wait, together.
    pub delayed: Duration,
    /// The longest.
    pub delayed_max: Duration,
}

/// A disk.
#[derive(Debug)]
pub struct Disk {
    store: Store,
    traits: Traits,
    random: fastrand::Rng,
    begun: Instant,
    figures: Figures,
    /// When all is done that was asked for until now.
    busy: Duration,
    /// Whether the power is gone.
    is_off: bool,
}

impl Disk {
    pub(crate) fn new(medium: File, traits: Traits, seed: u64) -> anyhow::Result<Disk> {
        let store = Store::new(medium, traits.cache.clone())?;
        let len = store.len_bytes();
        ensure!(
            len > 0 && len % BLOCK_LEN as u64 == 0,
            "a disk of {len} bytes: it takes a multiple of {BLOCK_LEN}"
        );
        Ok(Disk {
            store,
            traits,
            random: fastrand::Rng::with_seed(seed),
            begun: Instant::now(),
            figures: Figures::default(),
            busy: Duration::ZERO,
            is_off: false,
        })
    }

    /// Counts from here on: requests, times, faults.
    pub(crate) fn begin_anew(&mut self, traits: Traits) {
        self.traits = traits;
        (self.begun, self.busy, self.figures) =
            (Instant::now(), Duration::ZERO, Figures::default());
    }

    /// The figures until now.
    pub fn figures(&self) -> Figures {
        self.figures
    }

    /// Whether requests may fail.
    pub fn can_fail(&self) -> bool {
        !self.traits.failing.is_empty()
    }

    /// The power goes: the medium has from now on the bytes that a power cut leaves, and each
    /// request fails.
    ///
    /// # Errors
    ///
    /// The file of the medium cannot be used.
    pub fn cut(&mut self) -> io::Result<Cut> {
        self.is_off = true;
        self.store.cut(&mut self.random)
    }

    /// The power comes back. The pages that the kernel has cached of the device must be forgotten
    /// ([`BlockDevice::forget_cached`](crate::BlockDevice::forget_cached)).
    pub fn power_on(&mut self) {
        self.is_off = false;
    }

    fn tally(&mut self, kind: Kind) -> &mut Tally {
        match kind {
            Kind::Read => &mut self.figures.reads,
            Kind::Write => &mut self.figures.writes,
            Kind::Flush => &mut self.figures.flushes,
        }
    }

    /// How long a request waits that comes at `at`.
    fn delay(&mut self, operation: &Operation, at: Duration) -> Duration {
        let done = self.traits.done(operation, at);
        self.figures.overlapping += u64::from(at < self.busy);
        self.busy = self.busy.max(done);
        let tally = self.tally(operation.kind);
        tally.count += 1;
        tally.bytes += operation.len;
        tally.delayed += done - at;
        tally.delayed_max = tally.delayed_max.max(done - at);
        done - at
    }

    /// Whether a write is answered and goes nowhere.
    fn is_dropped(&mut self) -> bool {
        self.traits.dropped > 0.0 && self.random.f64() < self.traits.dropped
    }

    fn serve(&mut self, request: Request<'_>, operation: &Operation) -> Result<Vec<u8>, Errno> {
        // Each counts the request.
        let mut fails = false;
        self.traits.failing.iter_mut().for_each(|failing| fails |= failing.fails(operation));
        if self.is_off || fails {
            return Err(Errno::IO);
        }
        let result = match request {
            Request::Read(offset, len) => self.store.read(offset, len),
            Request::Write(..) if self.is_dropped() => Ok(Vec::new()),
            Request::Write(offset, bytes) => self.store.write(offset, bytes).map(|()| Vec::new()),
            Request::Flush => self.store.flush().map(|()| Vec::new()),
        };
        result.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
    }
}

impl Served for Disk {
    fn len_bytes(&self) -> u64 {
        self.store.len_bytes()
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.store.descriptor()]
    }

    fn answer(&mut self, request: Request<'_>) -> Result<Vec<u8>, Errno> {
        let operation = Operation::of(request);
        let result = self.serve(request, &operation);
        self.tally(operation.kind).failed += u64::from(result.is_err());
        result
    }

    fn due(&mut self, request: Request<'_>) -> Option<Instant> {
        let at = self.begun.elapsed();
        let delay = self.delay(&Operation::of(request), at);
        (!delay.is_zero()).then(|| self.begun + at + delay)
    }
}
