//! Suite `loggers`: many threads of one process log into one file; what does a record cost?
//!
//! Every combination of record length and threads is a cell. In each cell every logger runs once in
//! each round, one after the other (A B C … A B C …); the first round is not counted. A round is:
//! settle the filesystem, fork, open, have all threads stand ready, clock, log, flush, clock, read
//! everything back and verify it, delete.
//!
//! **The clock runs until the bytes are in the file.** A logger that only hands records to a thread
//! of its own is not done when its calls return; until when they took is told beside it. A logger
//! may drop records if it counts them: they are told too, and the rest has to be there.

use std::path::PathBuf;
use std::time::Duration;

use crate::conditions::Conditions;
use crate::error::{Context, Error, Result};
use crate::place::{self, Places};
use crate::progress::{Event, Progress};
use crate::record;
use crate::report::Row;

mod contender;
mod contest;
mod own;
mod round;

pub use contender::{Contender, Kept, Logger, Session, VELLUM_DIR};
use round::Cell;

/// The report of this suite.
pub type Report = crate::report::Report<Row>;

/// What the ratios are to.
const BASELINE: &str = "write";

/// No such machine is meant.
const THREADS_MAX: u32 = 1024;

/// What is to be measured.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// Where: a directory that exists, on the filesystem of interest. The logs are made in a new
    /// directory inside it, which is removed in the end.
    pub directory: PathBuf,
    /// How long a record is, with its newline; the default is 128.
    pub bytes: Vec<usize>,
    /// How many threads log; the default is 1, 2 and 4.
    pub threads: Vec<u32>,
    /// How many records all of them together log in a round; the default is 400 000.
    pub records: u64,
    /// The names of the loggers, in the order of their turns; empty for all. There are ratios only
    /// if `write` is among them.
    pub cases: Vec<String>,
    /// How many rounds are counted, after one that is not; the default is 5.
    pub rounds: u32,
    /// The options of the Vellum log; the layout is text.
    pub vellum: vellum::Options,
    /// No single round may take longer; the default is two minutes. Then its process is killed and
    /// the logger has failed.
    pub limit: Duration,
}

impl Config {
    /// Records of 128 bytes from one, two and four threads, all loggers, in `directory`.
    pub fn new(directory: impl Into<PathBuf>) -> Config {
        Config {
            directory: directory.into(),
            bytes: vec![128],
            threads: vec![1, 2, 4],
            records: 400_000,
            cases: Vec::new(),
            rounds: 5,
            vellum: vellum::Options::new().advice(false),
            limit: Duration::from_secs(120),
        }
    }

    fn check(&self) -> Result<()> {
        if self.bytes.is_empty() || self.threads.is_empty() || self.rounds == 0 {
            return Err(Error::invalid(
                "at least one length, one count of threads and one round are needed",
            ));
        }
        if let Some(threads) = self.threads.iter().find(|one| !(1..=THREADS_MAX).contains(*one)) {
            return Err(Error::invalid(format!(
                "{threads} threads: from 1 to {THREADS_MAX} can log"
            )));
        }
        if let Some(bytes) = self.bytes.iter().find(|bytes| **bytes < record::STAMPED_BYTES_MIN) {
            return Err(Error::invalid(format!(
                "records of {bytes} bytes: {} at least can be verified",
                record::STAMPED_BYTES_MIN
            )));
        }
        self.cells().iter().try_for_each(|cell| cell.setting().check())
    }

    /// Every combination of the lists.
    fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for &bytes in &self.bytes {
            for &threads in &self.threads {
                let records = self.records / u64::from(threads.max(1));
                cells.push(Cell { threads, records, bytes });
            }
        }
        cells
    }

    /// The loggers that `self` asks for, in the order in which it names them.
    fn chosen<'a>(&self, all: &[&'a dyn Contender]) -> Result<Vec<&'a dyn Contender>> {
        if self.cases.is_empty() {
            return Ok(all.to_vec());
        }
        let named = |name: &String| {
            all.iter().copied().find(|one| one.name() == name).ok_or_else(|| {
                let names: Vec<&str> = all.iter().map(|one| one.name()).collect();
                Error::invalid(format!(
                    "\"{name}\" is not a logger; there are {}",
                    names.join(", ")
                ))
            })
        };
        self.cases.iter().map(named).collect()
    }
}

/// Measures what `config` says, with `others` after the loggers of this crate, and tells `progress`
/// how it goes.
///
/// Forks: best called from a process with no other thread. A logger that fails is in the report
/// ([`Report::failures`]) and does not end the run.
///
/// # Errors
///
/// Nothing was run if the configuration makes no sense. A run ends early if its directory can't be
/// used.
pub fn run_with(
    config: &Config,
    others: &[Box<dyn Contender>],
    progress: &mut dyn Progress,
) -> Result<Report> {
    config.check()?;
    let own: [Box<dyn Contender>; 2] =
        [Box::new(own::VellumText { options: config.vellum.clone() }), Box::new(own::Write)];
    let all: Vec<&dyn Contender> = own.iter().chain(others).map(Box::as_ref).collect();
    let chosen = config.chosen(&all)?;
    let mut conditions = Conditions::now(&config.directory, &config.vellum);
    conditions.software = software(&chosen);
    let home = place::home(&config.directory)?;
    let bytes = config.cells().iter().map(|cell| cell.setting().total_bytes()).max().unwrap_or(0);
    let places = Places { home: home.path(), in_directory: true, scratch: &[], bytes };
    let mut warnings = crate::suite::load_warning(&conditions);
    for warning in &warnings {
        progress.event(&Event::Warning(warning));
    }
    let turns = config.cells().len() as u64 * chosen.len() as u64;
    progress.event(&Event::Started { steps: turns * u64::from(config.rounds + 1) });
    let mut cases = Vec::new();
    places.visit(&mut warnings, progress, &mut |place, progress| {
        for cell in config.cells() {
            let mut run = contest::Run { place, cell, limit: config.limit, progress };
            cases.extend(run.contest(&chosen, config.rounds)?);
        }
        Ok(())
    })?;
    progress.event(&Event::Finished);
    home.close().context(|| "remove the directory of the run")?;
    Ok(Report { suite: "loggers", conditions, rounds: config.rounds, warnings, cases })
}

/// Of those that take part, each once.
fn software(chosen: &[&dyn Contender]) -> Vec<String> {
    let mut software: Vec<String> = chosen.iter().filter_map(|one| one.software()).collect();
    software.sort();
    software.dedup();
    software
}

#[cfg(test)]
mod tests;
