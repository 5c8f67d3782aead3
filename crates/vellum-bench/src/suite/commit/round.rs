//! One contender, one cell, one time: commit under the clock, then verify.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::contender::{Cell, Committer, Prepared};
use super::tally::{Tally, first_writer};
use crate::error::{Error, Result};
use crate::process::{Runner, Start, race};
use crate::record::Records;
use crate::shared::Shared;

/// How long a round lasts, and when it is given up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) slice: Duration,
    pub(crate) limit: Duration,
}

/// The result of a round.
#[derive(Debug)]
pub(crate) struct Sample {
    pub(crate) commits_per_second: f64,
    pub(crate) syncs_per_commit: Option<f64>,
    pub(crate) nanos: Vec<u64>,
}

/// The words that the threads of all processes share. Each word is written by one thread, but for
/// `taken`; the parent reads when all processes have ended, which orders everything.
struct Book {
    /// Commits that were begun: a thread that takes a number below the most there can be makes it.
    taken: Shared<AtomicU64>,
    /// How many each writer was acknowledged.
    acknowledged: Shared<AtomicU64>,
    /// How long each commit took, by its number.
    nanos: Shared<AtomicU64>,
}

impl Book {
    fn new(cell: &Cell) -> Result<Book> {
        Ok(Book {
            taken: Shared::new(1)?,
            acknowledged: Shared::new(cell.writers() as usize)?,
            nanos: Shared::new(cell.commits_max as usize)?,
        })
    }

    fn acknowledged(&self) -> Vec<u64> {
        self.acknowledged.iter().map(|count| count.load(Ordering::Relaxed)).collect()
    }

    /// The samples; of each of `commits` one was taken.
    fn nanos(&self, commits: u64) -> Vec<u64> {
        let nanos = self.nanos.iter().take(commits as usize);
        nanos.map(|nanos| nanos.load(Ordering::Relaxed)).collect()
    }
}

/// Commits with all threads of all processes and verifies what is there then.
pub(crate) fn measure(
    prepared: &dyn Prepared,
    cell: &Cell,
    round: u32,
    times: Times,
) -> Result<Sample> {
    let book = Book::new(cell)?;
    let first_writer = first_writer(round, cell.writers());
    let syncs_before = prepared.syncs()?;
    let race = race(cell.processes, times.limit, &|runner| {
        commit_in_process(runner, prepared, cell, first_writer, &book, times.slice)
    })?;
    let syncs_after = prepared.syncs()?;
    let acknowledged = book.acknowledged();
    let commits: u64 = acknowledged.iter().sum();
    if commits == 0 {
        return Err(Error::failed("not one commit came to its end"));
    }
    verify(prepared, cell, first_writer, &acknowledged, times.limit)?;
    let syncs = syncs_before.zip(syncs_after).map(|(before, after)| after.saturating_sub(before));
    Ok(Sample {
        commits_per_second: commits as f64 / (race.wall_ns.max(1) as f64 / 1e9),
        syncs_per_commit: syncs.map(|syncs| syncs as f64 / commits as f64),
        nanos: book.nanos(commits),
    })
}

/// Reads everything back in a process of its own: an engine that starts threads to read, or crashes
/// over what it finds, does neither to this one.
fn verify(
    prepared: &dyn Prepared,
    cell: &Cell,
    first_writer: u32,
    acknowledged: &[u64],
    limit: Duration,
) -> Result<()> {
    let verification = race(1, limit, &|runner| {
        let kept = prepared.kept_per_writer();
        let mut tally = Tally::new(cell.bytes, first_writer, acknowledged, kept);
        let standing = runner.stand_ready()?;
        prepared.read_back(&mut |record| tally.enter(record))?;
        tally.close()?;
        runner.finish(standing, 0)
    });
    verification.map(drop).map_err(|error| Error::failed(format!("read back: {error}")))
}

/// The work of each process: its threads are ready, the gate opens, they commit.
fn commit_in_process(
    runner: &Runner<'_>,
    prepared: &dyn Prepared,
    cell: &Cell,
    first_writer: u32,
    book: &Book,
    slice: Duration,
) -> Result<()> {
    let committer = prepared.open()?;
    let (standing, acknowledged) = runner.with_threads(cell.threads, |thread, start| {
        let index = runner.index() * cell.threads + thread;
        Writer { index, first_writer, cell, book, slice }.run(&*committer, start)
    })?;
    runner.finish(standing, acknowledged.iter().sum())
}

/// A thread that commits.
struct Writer<'a> {
    /// Among the threads of all processes.
    index: u32,
    first_writer: u32,
    cell: &'a Cell,
    book: &'a Book,
    slice: Duration,
}

impl Writer<'_> {
    /// Returns how many commits were acknowledged.
    fn run(&self, committer: &dyn Committer, start: &Start) -> Result<u64> {
        let mut records = Records::new(self.first_writer + self.index, self.cell.bytes);
        let session = committer.session(self.index);
        start.wait();
        let mut session = session?;
        let begun = Instant::now();
        let mut before = begun;
        let mut acknowledged = 0;
        while before.duration_since(begun) < self.slice {
            let number = self.book.taken[0].fetch_add(1, Ordering::Relaxed);
            let Some(nanos) = self.book.nanos.get(number as usize) else { break };
            session.commit(records.next_record()).map_err(|error| {
                Error::failed(format!("{error} (after {acknowledged} commits of the thread)"))
            })?;
            let after = Instant::now();
            nanos.store(after.duration_since(before).as_nanos() as u64, Ordering::Relaxed);
            before = after;
            acknowledged += 1;
        }
        self.book.acknowledged[self.index as usize].store(acknowledged, Ordering::Relaxed);
        Ok(acknowledged)
    }
}
