//! A log that commits: how many records a second are made durable, by one thread and by several.
//!
//! The turns are those of suite `commit`, on logs that are made once and used in all rounds, with
//! their space made ready ahead. All logs have segments of the same size: the one of a staged log,
//! or less where space is short.

use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use vellum::{Fill, Options, Preallocate, Tuning};

use super::default::Default;
use super::{Field, Times as CommitTimes};
use crate::advise::Purpose;
use crate::advise::way::{LogWay, Way};
use crate::call_times::Latency;
use crate::error::{Error, Result};
use crate::suite::commit::Cell;
use crate::suite::commit::keeper::Keeper;
use crate::suite::commit::round::{Times, measure};
use crate::suite::commit::vellum_log::Vellum;

/// A short record, as most logs that commit have.
const RECORD_BYTES: usize = 256;
const BLOCK_BYTES: u64 = 4096;

/// In a turn no more is committed than fits these segments, besides those that are there anyway.
const SEGMENTS: u64 = 3;
/// Segments of one log: those, the one in use, and one ahead.
const SEGMENTS_MAX: u64 = SEGMENTS + 2;
const SEGMENT_BYTES: u64 = 16 << 20;
/// There is no time to make longer ones.
const SEGMENT_BYTES_QUICK: u64 = 4 << 20;
const SEGMENT_BYTES_MIN: u64 = 256 << 10;

const SLICE_FIRST: Duration = Duration::from_millis(10);
const SLICE_MIN: Duration = Duration::from_millis(4);
const SLICE_MAX: Duration = Duration::from_millis(400);
const LIMIT: Duration = Duration::from_secs(30);

/// What there is besides the default, the simplest first.
const OTHERS: [LogWay; 5] = [
    LogWay::new(Fill::Pwrite, Preallocate::Off),
    LogWay::new(Fill::Pwrite, Preallocate::Fallocate),
    LogWay::new(Fill::Pwrite, Preallocate::Zeros),
    LogWay::new(Fill::Pwrite, Preallocate::Recycle),
    LogWay::new(Fill::Mapped, Preallocate::Fallocate),
];

/// The logs of all ways, and how long they commit in a turn.
pub(in crate::advise) struct WalField {
    dir: PathBuf,
    default: Default,
    ways: Vec<LogWay>,
    threads: [u32; 2],
    segment_bytes: u64,
    logs: Vec<Keeper>,
    /// For each way, and each of `threads`.
    times: Vec<[CommitTimes; 2]>,
    slice: Duration,
}

impl WalField {
    /// In the directory `dir`, which is new. All logs together take up to `space` bytes.
    pub(in crate::advise) fn new(
        dir: PathBuf,
        space: u64,
        cores: usize,
        is_quick: bool,
    ) -> Result<WalField> {
        let usual = if is_quick { SEGMENT_BYTES_QUICK } else { SEGMENT_BYTES };
        let share = space / ((OTHERS.len() as u64 + 1) * SEGMENTS_MAX);
        let segment_bytes = 1 << share.max(1).ilog2();
        if segment_bytes < SEGMENT_BYTES_MIN {
            return Err(Error::no_space("there is too little space for logs that commit"));
        }
        let several = u32::try_from(2 * cores).unwrap_or(u32::MAX).clamp(2, 4);
        let default = Default::of(&dir, &Options::wal().exclusive(false))?;
        let segment_bytes = segment_bytes.min(usual);
        let ways = default.and(&OTHERS);
        let log = |(index, way): (usize, &LogWay)| {
            let vellum = Vellum { options: options(*way, segment_bytes), is_prepared: true };
            Keeper::new(Rc::new(vellum), dir.join(index.to_string()))
        };
        let logs = ways.iter().enumerate().map(log).collect();
        let threads = [1, several];
        let of = |threads| CommitTimes { threads: by(threads), ..CommitTimes::default() };
        let times = vec![threads.map(of); ways.len()];
        Ok(WalField { dir, default, ways, threads, segment_bytes, logs, times, slice: SLICE_FIRST })
    }

    /// Whether space or time is too short for the usual segments; then how long they are.
    pub(in crate::advise) fn shorter_segments(&self) -> Option<u64> {
        (self.segment_bytes < SEGMENT_BYTES).then_some(self.segment_bytes)
    }

    fn cell(&self, threads: u32) -> Cell {
        let commits_max = SEGMENTS * self.segment_bytes / (BLOCK_BYTES * 2);
        Cell { bytes: RECORD_BYTES, threads, processes: 1, commits_max }
    }
}

fn by(threads: u32) -> String {
    if threads == 1 { "1 thread".into() } else { format!("{threads} threads") }
}

fn options(way: LogWay, segment_bytes: u64) -> Options {
    way.on(Options::wal()
        .exclusive(false)
        .tuning(Tuning::new().segment_capacity_bytes(segment_bytes)))
}

impl Field for WalField {
    fn purpose(&self) -> Purpose {
        Purpose::Wal
    }

    fn ways(&self) -> Vec<Way> {
        self.ways.iter().copied().map(Way::Log).collect()
    }

    fn figures(&self) -> Vec<(String, &'static str)> {
        self.threads.map(|threads| (by(threads), "commits/s")).to_vec()
    }

    fn probe(&mut self, way: usize) -> std::result::Result<(), String> {
        let way = self.ways[way];
        self.default.probe(&self.dir, &options(way, self.segment_bytes), way)
    }

    fn turn(&mut self, way: usize, round: u32) -> Result<Vec<f64>> {
        let times = Times { slice: self.slice, limit: self.slice + LIMIT };
        let mut speeds = Vec::new();
        for (index, threads) in self.threads.into_iter().enumerate() {
            let cell = self.cell(threads);
            let one = self.cell(1);
            let sample = measure(self.logs[way].ready(&one)?, &cell, round, times)?;
            speeds.push(sample.commits_per_second);
            let latency = Latency::of(&mut sample.nanos.clone()).filter(|_| round > 0);
            if let Some(latency) = latency {
                let times = &mut self.times[way][index];
                times.p50.push(latency.p50);
                times.p99.push(latency.p99);
            }
        }
        Ok(speeds)
    }

    fn times(&self, way: usize) -> Vec<CommitTimes> {
        self.times[way].to_vec()
    }

    fn fit(&mut self, spent: Duration, budget: Duration) {
        let turns =
            self.logs.iter().filter(|log| log.has_log()).count().max(1) * self.threads.len();
        let overhead = spent.saturating_sub(self.slice * turns as u32);
        let slice = budget.saturating_sub(overhead) / turns as u32;
        self.slice = slice.clamp(SLICE_MIN, SLICE_MAX);
    }
}
