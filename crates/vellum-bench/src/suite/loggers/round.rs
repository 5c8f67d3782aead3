//! One logger, one cell, one time: log under the clock, then read everything back.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::contender::{Contender, Kept, Logger, VELLUM_DIR};
use crate::error::{Context, Error, Result};
use crate::process::{Runner, Start, race};
use crate::record::Records;
use crate::setting::Setting;
use crate::shared::Shared;
use crate::suite::settle;
use crate::verify::{Ledger, Splitter};
use crate::ways::{plain, vellum_text};

/// The conditions that are the same for all loggers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) threads: u32,
    /// Each thread logs so many.
    pub(super) records: u64,
    pub(super) bytes: usize,
}

impl Cell {
    pub(super) fn total_records(self) -> u64 {
        u64::from(self.threads) * self.records
    }

    /// For the ledger, which knows writers by number and need not know their kind.
    pub(super) fn setting(self) -> Setting {
        Setting::new(self.threads, self.records, self.bytes)
    }
}

/// The result of a round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// Until everything was in the file.
    pub(super) wall_ns: u64,
    /// Until the last thread's last call had returned.
    pub(super) calls_ns: u64,
    /// Records that the logger says it dropped.
    pub(super) dropped: u64,
}

impl Sample {
    pub(super) fn wall_ns(&self) -> f64 {
        self.wall_ns as f64
    }
}

/// The report of the process beside its time. It writes, the parent reads when it has ended, which
/// orders everything.
struct Told {
    calls_ns: Shared<AtomicU64>,
    dropped: Shared<AtomicU64>,
}

/// Logs with all threads and verifies what is there then, in `dir`, which is empty.
pub(super) fn measure(
    contender: &dyn Contender,
    cell: Cell,
    dir: &Path,
    limit: Duration,
) -> Result<Sample> {
    settle(dir)?;
    let told = Told { calls_ns: Shared::new(1)?, dropped: Shared::new(1)? };
    let race = race(1, limit, &|runner| log_in_process(runner, contender, cell, dir, &told))?;
    let dropped = told.dropped[0].load(Ordering::Relaxed);
    verify(contender.kept(), cell, dir, dropped)?;
    let calls_ns = told.calls_ns[0].load(Ordering::Relaxed);
    Ok(Sample { wall_ns: race.wall_ns, calls_ns, dropped })
}

/// The work of the process: its threads are ready, the gate opens, they log, and it waits for the
/// rest.
fn log_in_process(
    runner: &Runner<'_>,
    contender: &dyn Contender,
    cell: Cell,
    dir: &Path,
    told: &Told,
) -> Result<()> {
    let logger = contender.open(dir, cell.bytes)?;
    let (standing, _) = runner
        .with_threads(cell.threads, |thread, start| log_in_thread(&*logger, cell, thread, start))?;
    let calls_ns = standing.elapsed().as_nanos() as u64;
    let dropped = logger.finish()?;
    runner.finish(standing, cell.total_records())?;
    told.calls_ns[0].store(calls_ns, Ordering::Relaxed);
    told.dropped[0].store(dropped, Ordering::Relaxed);
    Ok(())
}

fn log_in_thread(logger: &dyn Logger, cell: Cell, thread: u32, start: &Start) -> Result<()> {
    let mut records = Records::new(thread, cell.bytes);
    let session = logger.session();
    start.wait();
    let mut session = session?;
    for logged in 0..cell.records {
        session
            .log(records.next_record())
            .map_err(|error| Error::failed(format!("{error} (after {logged} records)")))?;
    }
    Ok(())
}

/// Is everything there but so many records that the logger has told to be dropped?
fn verify(kept: Kept, cell: Cell, dir: &Path, dropped: u64) -> Result<()> {
    let mut ledger = Ledger::new(&cell.setting());
    match kept {
        Kept::Files => read_files(dir, cell.bytes, &mut |record| ledger.enter(record))?,
        Kept::VellumLog => {
            let dir = dir.join(VELLUM_DIR);
            vellum_text::read_log(&dir, cell.bytes, &mut |record| ledger.enter(record))?;
        }
    }
    ledger.close_but(dropped).map(drop)
}

fn read_files(dir: &Path, bytes: usize, visit: &mut dyn FnMut(&[u8])) -> Result<()> {
    let entries = fs::read_dir(dir).context(|| format!("list {}", dir.display()))?;
    let paths: std::io::Result<Vec<PathBuf>> =
        entries.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut paths = paths.context(|| format!("list {}", dir.display()))?;
    paths.sort();
    let mut splitter = Splitter::new(bytes);
    for path in paths {
        plain::read_pieces(&path, u64::MAX, &mut |piece| splitter.feed(piece, visit))?;
    }
    splitter.finish(visit);
    Ok(())
}
