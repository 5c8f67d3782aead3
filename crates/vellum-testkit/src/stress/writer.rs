//! Appending, by the threads of one process.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::{Result, anyhow};
use vellum::stat::TrimReport;
use vellum::{CursorHold, Log, Lsn};

use super::args::{Args, CommitEvery};
use super::cli::failure;
use super::follower;
use super::held::Syncs;
use super::payload::Name;
use super::reports::Reports;
use super::retention::Retention;
use super::survey::Survey;

/// The cursor that stops trims.
const CURSOR: &str = "stress";

/// Appends the records of the threads of process `process`, and prints those that become durable.
/// Each writer continues with its number in `next`.
pub(super) fn run(log: &Log, args: &Args, process: u32, next: &[u64]) -> Result<()> {
    let reports = Reports::new()?;
    let are_done = AtomicBool::new(false);
    thread::scope(|scope| {
        let (reports, are_done) = (&reports, &are_done);
        if args.follow {
            scope.spawn(move || {
                let followed = follower::run(log, args, process, reports, are_done);
                followed.unwrap_or_else(|error| reports.fail(error));
            });
        }
        append_all(log, args, process, next, reports);
        are_done.store(true, Ordering::SeqCst);
    });
    reports.end()
}

/// Runs the writers of process `process` to their end.
fn append_all(log: &Log, args: &Args, process: u32, next: &[u64], reports: &Reports) {
    let syncs = Syncs::default();
    thread::scope(|scope| {
        let threads = args.threads as usize;
        for (thread, first) in
            next.iter().skip(process as usize * threads).take(threads).enumerate()
        {
            let (syncs, holds) = (args.sync.then_some(&syncs), thread == 0);
            scope.spawn(move || {
                let mut writer = Writer { syncs, holds, ..Writer::new(log, args, reports, *first) };
                if let Err(error) = writer.append_all() {
                    reports.fail(error);
                }
            });
        }
    });
}

/// A thread that appends.
struct Writer<'a> {
    log: &'a Log,
    args: &'a Args,
    reports: &'a Reports,
    /// Its first number.
    first: u64,
    /// How many writers there are in all processes.
    writers: u64,
    /// Records that wait for their batch to be full.
    batch: Vec<(u64, Vec<u8>)>,
    /// Records that were appended since the last commit.
    pending: Vec<u64>,
    /// The position of the newest record, of all and of those that may be trimmed.
    newest: Lsn,
    settled: Lsn,
    /// The end of the committed part when it trimmed last.
    trim_next: Lsn,
    retention: Option<Retention>,
    /// Where it commits with `sync`.
    syncs: Option<&'a Syncs>,
    /// Whether it holds its reservation until the others sync.
    holds: bool,
}

impl<'a> Writer<'a> {
    fn new(log: &'a Log, args: &'a Args, reports: &'a Reports, first: u64) -> Writer<'a> {
        let writers = args.writers();
        let (newest, settled, trim_next) = (Lsn::ZERO, Lsn::ZERO, Lsn::ZERO);
        let (batch, pending) = (Vec::new(), Vec::new());
        let retention = Retention::of(args);
        Writer {
            log,
            args,
            reports,
            first,
            writers,
            batch,
            pending,
            newest,
            settled,
            trim_next,
            retention,
            syncs: None,
            holds: false,
        }
    }

    fn append_all(&mut self) -> Result<()> {
        let mut payload = Vec::new();
        let numbers = (self.first..self.args.records).step_by(self.writers as usize);
        for (count, number) in (1..).zip(numbers) {
            if self.reports.has_failed() {
                return Ok(());
            }
            if let Some(retention) = &mut self.retention {
                retention.announce(self.log, self.reports)?;
            }
            self.append(number, &mut payload)?;
            match self.args.commit {
                CommitEvery::Records(every) if self.pending.len() as u64 >= every => {
                    self.commit()?;
                }
                CommitEvery::Never => self.settled = self.newest,
                CommitEvery::Records(_) => {}
            }
            if number % self.writers == 0 {
                self.look_after(count)?;
            }
        }
        self.commit()
    }

    fn append(&mut self, number: u64, payload: &mut Vec<u8>) -> Result<()> {
        let name = Name::Record { number, writers: self.writers, seed: self.args.seed };
        name.write(&self.args.bytes.0, self.log.layout(), payload);
        self.batch.push((number, payload.clone()));
        if self.batch.len() as u64 >= self.args.batch { self.append_batch() } else { Ok(()) }
    }

    /// Appends what has been collected.
    fn append_batch(&mut self) -> Result<()> {
        let appended = match &self.batch[..] {
            [] => return Ok(()),
            [(_, record)] => self.append_one(record),
            records => {
                let mut batch = self.log.batch();
                let pushed = records.iter().try_for_each(|(_, record)| batch.push(record));
                pushed.and_then(|()| batch.append()).map_err(failure)
            }
        };
        let number = self.batch[0].0;
        self.newest =
            appended.map_err(|error| anyhow!("record {number} was not appended: {error}"))?;
        let numbers = self.batch.drain(..).map(|(number, _)| number);
        if self.args.commit != CommitEvery::Never {
            self.pending.extend(numbers);
        }
        Ok(())
    }

    fn append_one(&self, record: &[u8]) -> Result<Lsn> {
        match self.syncs.filter(|_| self.holds) {
            Some(syncs) => syncs.append_held(self.log, record, u64::from(self.args.threads) - 1),
            None => self.log.append(record).map_err(failure),
        }
    }

    fn commit(&mut self) -> Result<()> {
        self.append_batch()?;
        let Some(last) = self.pending.last() else { return Ok(()) };
        let committed = match self.syncs {
            Some(syncs) => syncs.sync(self.log).map(drop),
            None => self.log.commit(self.newest),
        };
        committed.map_err(|error| anyhow!("record {last} was not committed: {error}"))?;
        self.settled = self.newest;
        if !self.args.follow {
            self.reports.acknowledge(&self.pending)?;
        }
        self.pending.clear();
        Ok(())
    }

    /// The tasks of the first writer for all, after so many of its records.
    fn look_after(&mut self, count: u64) -> Result<()> {
        let is_due = |every: Option<u64>| every.is_some_and(|every| count.is_multiple_of(every));
        if is_due(self.args.checkpoint_every) && self.settled > self.log.begin() {
            self.log.checkpoint().set(self.settled).map_err(failure)?;
        }
        if is_due(self.args.prepare_every) {
            self.log.prepare(1).map_err(failure)?;
        }
        if is_due(self.args.trim_every) { self.trim() } else { Ok(()) }
    }

    /// Drops what was settled when it was here before. Only one writer trims, so what is said to
    /// go is all that goes.
    fn trim(&mut self) -> Result<()> {
        let before = std::mem::replace(&mut self.trim_next, self.settled);
        if before <= self.log.begin() {
            return Ok(());
        }
        let going = Survey::before(self.log, before).map_err(|fault| anyhow!("{fault}"))?;
        self.reports.announce_drop(&going.sorted_numbers())?;
        let trimmed = if self.args.cursor { self.trim_held(before) } else { self.log.trim(before) };
        trimmed.map(drop).map_err(failure)
    }

    /// Commits the cursor to `before` and trims to the end, which the cursor stops.
    fn trim_held(&self, before: Lsn) -> vellum::Result<TrimReport> {
        let cursor = self.log.cursor(CURSOR, Lsn::ZERO)?;
        cursor.hold(CursorHold::new())?;
        cursor.commit(before)?;
        self.log.trim(self.log.published())
    }
}
