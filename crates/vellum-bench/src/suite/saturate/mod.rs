//! Suite `saturate`: many processes append to one log for longer than memory can hide the device.
//!
//! Other suites end before the kernel has much to write back. Here every way appends for many
//! seconds: dirty pages gather until the kernel stops a process that makes more of them, and a
//! device that has a budget uses it up. Then the mean does not matter, but how long single records
//! take, how long a writer is stopped, and that memory and disk stay bounded.
//!
//! One way after the other, with everything written and settled in between; in rounds if there are
//! several. The warm-up is a tenth as long: the suite is about the time from an idle beginning to
//! saturation, and the series show where saturation begins.
//!
//! **What is kept.** A log without an end is cut from behind. Every way keeps the same amount: the
//! Vellum ways trim, the others begin a new file and remove the oldest, as with logrotate. The
//! default is twice the dirty limit if the disk has room for it; a log that kept less could be
//! removed before it was ever written, and would meet no device at all. The writer that begins a
//! quarter of that removes the oldest one. That is counted apart from the records, because it takes
//! as long as filesystem and device want, by the byte: a faster way removes more.
//!
//! **The dirty limit** is a share of memory (`vm.dirty_ratio`) or a number (`vm.dirty_bytes`), on a
//! machine with much memory gigabytes. If it is not reached the report says so. An administrator
//! may lower it for the run; this program changes no setting of the machine.

use std::path::PathBuf;
use std::time::Duration;

use super::{Arena, Entrant, Plan, Scope, Suite, check_unique};
use crate::conditions::{Writeback, memory_bytes};
use crate::error::{Error, Result};
use crate::place::Place;
use crate::record::STAMPED_BYTES_MIN;
use crate::report::Case;
use crate::ways::WayName;

mod book;
mod kept;
mod load;
mod round;
mod rows;

use load::{Racer, disk_bytes, kept_bytes};
use round::Sample;

const PROCESSES_MAX: u32 = 256;
const BYTES_MAX: usize = 16 << 20;
const SECONDS_MAX: u64 = 24 * 3600;
/// No log is kept shorter: a segment of a Vellum log has 64 MiB, and several are in use.
const KEPT_BYTES_MIN: u64 = 64 << 20;
/// The warm-up is so many times shorter than a round.
const WARM_UP_SHARE: u32 = 10;
/// Filesystems made for the run are memory: a log may take this share of the available one.
const SCRATCH_SHARE: u64 = 8;

/// The choices of a measurement.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// Where, and how many rounds; the default is 1, after a short one that is not counted.
    pub scope: Scope,
    /// Which ways, in the order of their turns; the default is all but Linux AIO and io_uring.
    /// There are ratios only if [`WayName::Write`] is among them.
    pub ways: Vec<WayName>,
    /// How many processes append at once; the default is 4.
    pub processes: u32,
    /// How long a record is; the default is 4096.
    pub bytes: usize,
    /// How long each way appends in a round; the default is 20 seconds.
    pub duration: Duration,
    /// A way ends earlier when it has appended so many bytes; the default is never.
    pub bytes_max: Option<u64>,
    /// How much of a log is kept; the default is twice the dirty limit, as far as there is room.
    pub kept_bytes: Option<u64>,
    /// The options of the Vellum logs; layout and creation are set by the ways.
    pub vellum: vellum::Options,
}

impl Config {
    /// Six ways, twenty seconds each, in `directory`.
    pub fn new(directory: impl Into<PathBuf>) -> Config {
        use WayName::{Direct, Stdio, VellumFramed, VellumText, Write, Writev};
        Config {
            scope: Scope::new(directory, 1),
            ways: vec![VellumFramed, VellumText, Write, Writev, Stdio, Direct],
            processes: 4,
            bytes: 4096,
            duration: Duration::from_secs(20),
            bytes_max: None,
            kept_bytes: None,
            vellum: vellum::Options::default(),
        }
    }

    /// The same for two seconds and four ways.
    pub fn quick(directory: impl Into<PathBuf>) -> Config {
        let mut config = Config::new(directory);
        config.ways =
            vec![WayName::VellumFramed, WayName::VellumText, WayName::Write, WayName::Direct];
        config.duration = Duration::from_secs(2);
        config.kept_bytes = Some(256 << 20);
        config
    }

    fn check(&self) -> Result<()> {
        if self.ways.is_empty() || self.duration.is_zero() {
            return Err(Error::invalid("at least one way and some time are needed"));
        }
        if self.duration.as_secs() > SECONDS_MAX {
            return Err(Error::invalid(format!("at most {SECONDS_MAX} seconds")));
        }
        check_unique(&self.ways, "way")?;
        if !(1..=PROCESSES_MAX).contains(&self.processes) {
            return Err(Error::invalid(format!("from 1 to {PROCESSES_MAX} processes can append")));
        }
        if !(STAMPED_BYTES_MIN..=BYTES_MAX).contains(&self.bytes) {
            return Err(Error::invalid(format!(
                "records of {} bytes: from {STAMPED_BYTES_MIN} to {BYTES_MAX} can be verified",
                self.bytes
            )));
        }
        match self.kept_bytes {
            Some(bytes) if bytes < KEPT_BYTES_MIN => Err(Error::invalid(format!(
                "at least {} MiB of a log are kept",
                KEPT_BYTES_MIN >> 20
            ))),
            _ => Ok(()),
        }
    }
}

impl Config {
    /// All ways in one place, one after the other.
    fn contest(&self, limit: &Limit, arena: &mut Arena<'_>) -> Result<Vec<Case>> {
        let kept_bytes = limit.fit(arena);
        let no_room = || Error::unsupported("there is too little room for a log that goes on");
        let mut entrants: Vec<Entrant<Racer, Sample>> = Vec::new();
        for name in &self.ways {
            let racer = Racer { name: *name, way: name.way(&self.vellum) };
            let probed = arena.aside(|dir| racer.way.probe(dir).map_err(Error::unsupported))?;
            let probed = kept_bytes.map(drop).ok_or_else(no_room).and(probed);
            entrants.push(Entrant::new(format!("saturate {name}"), racer, probed));
        }
        arena.rounds(&mut entrants, |racer, turn| {
            let mut load = racer.load(self, kept_bytes.unwrap_or(KEPT_BYTES_MIN));
            if turn.round == 0 {
                load.duration /= WARM_UP_SHARE;
            }
            round::measure(&*racer.way, turn.dir, &load)
        })?;
        if let Some(warning) = limit.unreached(arena.place, &entrants) {
            arena.warn(warning);
        }
        Ok(rows::of(self, arena, kept_bytes, &entrants))
    }
}

impl Suite for Config {
    fn name(&self) -> &'static str {
        "saturate"
    }

    fn scope(&self) -> &Scope {
        &self.scope
    }

    fn scope_mut(&mut self) -> &mut Scope {
        &mut self.scope
    }

    /// # Cost
    ///
    /// Each way takes the time asked for, and about as long again to write everything out and read
    /// it back. Disk: twice what is kept. The device is written to as fast as it can.
    fn plan(&self) -> Result<Plan<'_>> {
        self.check()?;
        let limit = Limit::now(self.kept_bytes);
        let bytes = disk_bytes(limit.wanted_in(true));
        let compete = move |arena: &mut Arena<'_>| self.contest(&limit, arena);
        Ok(Plan { options: self.vellum.clone(), ..Plan::new(bytes, self.ways.len(), compete) })
    }
}

/// How much of a log is to be kept.
struct Limit {
    /// The dirty limit.
    bytes: Option<u64>,
    /// From so much on the kernel slows writers down.
    slowing_bytes: Option<u64>,
    /// The wanted bytes.
    wanted: Option<u64>,
    scratch_max: u64,
}

impl Limit {
    fn now(wanted: Option<u64>) -> Limit {
        let available = memory_bytes("MemAvailable").unwrap_or(1 << 30);
        let writeback = Writeback::now();
        Limit {
            bytes: writeback.limit_bytes(available),
            slowing_bytes: writeback.slowing_bytes(available),
            wanted,
            scratch_max: available / SCRATCH_SHARE,
        }
    }

    fn wanted_in(&self, is_scratch: bool) -> u64 {
        let usual = self.bytes.map_or(KEPT_BYTES_MIN, |bytes| bytes * 2);
        let usual = if is_scratch { usual.min(self.scratch_max) } else { usual };
        self.wanted.unwrap_or(usual).max(KEPT_BYTES_MIN)
    }

    /// The bytes that are kept in a place: less than wanted if there is no room, with a warning.
    /// `None` if there is too little room for a log without an end.
    fn fit(&self, arena: &mut Arena<'_>) -> Option<u64> {
        let place = arena.place;
        let wanted = self.wanted_in(place.is_scratch);
        let room = kept_bytes(place.usable_bytes());
        if wanted <= room || room < KEPT_BYTES_MIN {
            return (wanted <= room).then_some(wanted);
        }
        arena.warn(format!(
            "{}: {} MiB of each log are kept and not {} MiB, which have no room",
            place.filesystem,
            room >> 20,
            wanted >> 20
        ));
        Some(room)
    }

    /// Says if the kernel never had reason to slow a writer down.
    fn unreached(&self, place: &Place<'_>, entrants: &[Entrant<Racer, Sample>]) -> Option<String> {
        let slowing = self.slowing_bytes?;
        let samples = entrants.iter().flat_map(|entrant| entrant.samples());
        let peak = samples.flat_map(|sample| &sample.dirty_bytes).max().copied()?;
        (peak < slowing).then(|| {
            format!(
                "{}: the kernel slows writers down from about {} MiB of dirty memory on, and the \
                 most was {} MiB; a longer run, more that is kept or a lower vm.dirty_bytes would \
                 reach it",
                place.filesystem,
                slowing >> 20,
                peak >> 20
            )
        })
    }
}

#[cfg(test)]
mod tests;
