//! Many segments in one log: the cost of opening, reading, looking and trimming.
//!
//! Segments are as small as they can be, so that it is their number that costs. One process goes
//! through the life of a log:
//!
//! ```text
//! write, close │ open │ join │ read │ stat │ close │ killed while open │ open │ close │
//! the control file is lost │ open │ trim half
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Signal, getpid, kill_process};
use vellum::{Create, Layout, Log, Lsn, Options, Tuning};

use super::taken::Taken;
use super::{Entry, Figure, LIMIT, timed};
use crate::error::{Context, Error, Result};
use crate::process::{figures, fork_child};
use crate::record::Records;
use crate::setting::Setting;
use crate::verify::Ledger;
use crate::ways::{WayName, vellum_log};

/// The least that a segment can have.
const CAPACITY_BYTES: u64 = 4096;
/// Four of them, with their frames, fill a segment.
const RECORD_BYTES: usize = 1000;
const RECORDS_PER_SEGMENT: u64 = 4;
/// With a header, and the blocks that are made for the next ones.
pub(super) const SEGMENT_DISK_BYTES: u64 = 16 << 10;
/// Records that are read at random.
const READS: usize = 200;

pub(super) const FIGURES: [Figure; 11] = [
    Figure::steady("write", "us/segment"),
    Figure::steady("open", "us"),
    Figure::steady("join", "us"),
    Figure::steady("open after kill", "us"),
    Figure::cost("recover", "us/segment"),
    Figure::steady("read at random", "us/record"),
    Figure::steady("read in order", "us/segment"),
    Figure::cost("stat", "us/segment"),
    Figure::steady("trim", "us/segment"),
    Figure::cost("descriptors", "in all"),
    Figure::cost("own memory", "KiB"),
];

/// The layout of the logs of a way, if it makes logs.
pub(super) fn layout(way: WayName) -> Option<Layout> {
    match way {
        WayName::VellumFramed => Some(Layout::Framed),
        WayName::VellumText => Some(Layout::Text),
        _ => None,
    }
}

pub(super) fn measure(entry: Entry, dir: &Path) -> Result<Vec<f64>> {
    let layout = layout(entry.way).ok_or_else(|| Error::unsupported("it has no segments"))?;
    let records = u64::from(entry.count) * RECORDS_PER_SEGMENT;
    let life = Life { dir: dir.join("log"), layout, records };
    figures(LIMIT, FIGURES.len(), || life.go_through(f64::from(entry.count)))
}

/// One log, and its content.
struct Life {
    dir: PathBuf,
    layout: Layout,
    records: u64,
}

impl Life {
    fn go_through(&self, segments: f64) -> Result<Vec<f64>> {
        let (places, write) = timed(|| self.write())?;
        let before = Taken::now()?;
        let (log, open) = timed(|| self.open())?;
        let (joined, join) = timed(|| self.open())?;
        drop(joined);
        let ((), at_random) = timed(|| read_at_random(&log, &places))?;
        let (bytes, in_order) = timed(|| count_bytes(&log))?;
        self.verify(&log, bytes)?;
        let (stat, stat_time) = timed(|| log.stat().map_err(failed))?;
        let taken = Taken::now()?.added(before, 1);
        if (stat.segments.len() as f64) < segments {
            return Err(Error::failed(format!("{} segments were made", stat.segments.len())));
        }
        drop(log);
        self.die_with_it_open()?;
        let (log, after_kill) = timed(|| self.open())?;
        drop(log);
        let control = self.dir.join("control");
        fs::remove_file(&control).context(|| format!("remove {}", control.display()))?;
        let (log, recover) = timed(|| self.open())?;
        let bytes = count_bytes(&log)?;
        self.verify(&log, bytes)?;
        let (removed, trim) = timed(|| self.trim_half(&log, &places))?;
        Ok(vec![
            write / segments / 1e3,
            open / 1e3,
            join / 1e3,
            after_kill / 1e3,
            recover / segments / 1e3,
            at_random / READS as f64 / 1e3,
            in_order / segments / 1e3,
            stat_time / segments / 1e3,
            trim / removed / 1e3,
            taken.descriptors,
            taken.own_kib,
        ])
    }

    fn options(&self) -> Options {
        let options = vellum::internal::options(self.layout)
            .tuning(Tuning::new().segment_capacity_bytes(CAPACITY_BYTES));
        match self.layout {
            Layout::Text => options.rotate_bytes(RECORDS_PER_SEGMENT * RECORD_BYTES as u64),
            _ => options,
        }
    }

    fn open(&self) -> Result<Log> {
        self.options().create(Create::Never).open(&self.dir).map_err(failed)
    }

    /// Returns where each record is.
    fn write(&self) -> Result<Vec<Lsn>> {
        let log = self.options().open(&self.dir).map_err(failed)?;
        let mut records = Records::new(0, RECORD_BYTES);
        (0..self.records).map(|_| log.append(records.next_record()).map_err(failed)).collect()
    }

    fn verify(&self, log: &Log, bytes: u64) -> Result<()> {
        let expected = self.records * RECORD_BYTES as u64;
        if bytes < expected {
            return Err(Error::failed(format!("{bytes} of {expected} bytes were read")));
        }
        let mut ledger = Ledger::new(&Setting::new(1, self.records, RECORD_BYTES));
        let mut reader = log.reader(Lsn::ZERO).map_err(failed)?;
        while let Some(record) = reader.next().map_err(failed)? {
            ledger.enter(record.payload);
        }
        ledger.close().map(drop)
    }

    /// Another process has the log open and is killed.
    fn die_with_it_open(&self) -> Result<()> {
        let work = || {
            let _log = self.open();
            let _ = kill_process(getpid(), Signal::KILL);
            1
        };
        let mut child = fork_child(work).context(|| "start a process")?;
        let status = child.reap()?;
        match status.terminating_signal() {
            Some(_) => Ok(()),
            None => Err(Error::failed("the process that was to be killed has ended itself")),
        }
    }

    /// Returns how many segments were removed, at least one for the quotient.
    fn trim_half(&self, log: &Log, places: &[Lsn]) -> Result<f64> {
        let middle = places[places.len() / 2];
        let report = log.trim(middle).map_err(failed)?;
        let mut reader = log.reader(log.begin()).map_err(failed)?;
        let first = reader.next().map_err(failed)?.map(|record| record.lsn);
        if first.is_none_or(|first| first > middle) {
            return Err(Error::failed("more was trimmed than was asked for"));
        }
        Ok(report.segments_removed.max(1) as f64)
    }
}

/// Reads records in an order that is the same in every run.
fn read_at_random(log: &Log, places: &[Lsn]) -> Result<()> {
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..READS {
        let place = places[random.usize(..places.len())];
        let record = log.read_at(place).map_err(failed)?;
        if record.payload.len() != RECORD_BYTES {
            return Err(Error::failed(format!("no record of {RECORD_BYTES} bytes is at {place}")));
        }
    }
    Ok(())
}

/// Reads the log from its beginning to its end.
fn count_bytes(log: &Log) -> Result<u64> {
    let mut reader = log.reader(Lsn::ZERO).map_err(failed)?;
    let mut bytes = 0;
    while let Some(record) = reader.next().map_err(failed)? {
        bytes += record.payload.len() as u64;
    }
    Ok(bytes)
}

/// For `map_err`.
#[cold]
#[expect(clippy::needless_pass_by_value, reason = "map_err hands it over")]
fn failed(error: vellum::Error) -> Error {
    vellum_log::failed(&error)
}
