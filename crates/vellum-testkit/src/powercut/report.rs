//! The outcome of a campaign.

use std::fmt;
use std::time::{Duration, Instant};

use vellum_zoo::filesystem::Filesystem;

use super::recording::{Event, Recording};

/// The trials on one filesystem.
#[derive(Clone, Debug)]
pub struct Totals {
    filesystem: Filesystem,
    recordings: u64,
    writes: u64,
    flushes: u64,
    acknowledged: u64,
    /// Power cuts during the workload; each image is opened once in each boot.
    pub cuts: u64,
    /// Power cuts during the recovery.
    pub nested: u64,
    /// Cuts that broke a promise.
    pub violations: u64,
    examined: Duration,
}

impl Totals {
    /// Nothing yet.
    pub fn new(filesystem: Filesystem) -> Totals {
        Totals {
            filesystem,
            recordings: 0,
            writes: 0,
            flushes: 0,
            acknowledged: 0,
            cuts: 0,
            nested: 0,
            violations: 0,
            examined: Duration::ZERO,
        }
    }

    /// Counts what a recording holds.
    pub fn add_recording(&mut self, recording: &Recording) {
        self.recordings += 1;
        self.writes += recording.count(|event| matches!(event, Event::Write(..))) as u64;
        self.flushes += recording.count(|event| *event == Event::Flush) as u64;
        self.acknowledged += recording.acknowledged().count();
    }

    /// Counts time spent on cuts.
    pub fn add_time(&mut self, time: Duration) {
        self.examined += time;
    }

    fn cuts_per_minute(&self) -> f64 {
        (self.cuts + self.nested) as f64 * 60.0 / self.examined.as_secs_f64().max(1e-9)
    }
}

/// The head of the table whose lines are [`Totals`].
pub const TABLE_HEAD: &str = "filesystem  recordings   writes  flushes  records promised     cuts  \
                              during recovery  violations  cuts/minute";

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:<10}  {:>10} {:>8} {:>8} {:>17} {:>8} {:>16} {:>11} {:>12.0}",
            self.filesystem.name(),
            self.recordings,
            self.writes,
            self.flushes,
            self.acknowledged,
            self.cuts,
            self.nested,
            self.violations,
            self.cuts_per_minute()
        )
    }
}

/// Tells on standard error how far it is, once a second.
#[derive(Debug)]
pub struct Progress {
    next: Instant,
}

impl Progress {
    /// Silent for a second.
    pub fn new() -> Progress {
        Progress { next: Instant::now() + Duration::from_secs(1) }
    }

    /// Tells it if it is time.
    pub fn tell(&mut self, totals: &Totals) {
        if Instant::now() >= self.next {
            eprintln!(
                "{}: {} recordings, {} cuts and {} during recovery, {} violations",
                totals.filesystem, totals.recordings, totals.cuts, totals.nested, totals.violations
            );
            *self = Progress::new();
        }
    }
}

impl Default for Progress {
    fn default() -> Progress {
        Progress::new()
    }
}
