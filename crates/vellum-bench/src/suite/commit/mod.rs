//! Suite `commit`: what does it cost to make a record survive a power cut?
//!
//! Every combination of record length, threads and processes is a cell. In each cell all contenders
//! commit for a short slice of time, one after the other, in rounds (A B C … A B C …); the first
//! round is not counted. A round is: make or renew the log, let the filesystem settle, fork, have
//! all threads stand ready, clock, commit, clock, read everything back and verify it.
//!
//! The limit that all are compared with, `direct-dsync`, is no log: every thread overwrites written
//! blocks of its own with one synchronous, direct write.
//!
//! Slices are short because many machines have a budget of disk operations or wander in speed over
//! minutes: ratios are taken within a round, and their median over the rounds.

use std::path::PathBuf;
use std::time::Duration;

use crate::conditions::Conditions;
use crate::error::{Context, Error, Result};
use crate::place::{self, Places};
use crate::progress::{Event, Progress};
pub use crate::report::commit::Case;
use crate::scratch::ScratchKind;

mod bare;
mod contender;
mod contest;
mod direct;
pub(crate) mod round;
mod tally;
pub(crate) mod vellum_log;

pub(crate) use bare::write_zeros;
pub use contender::{Cell, Committer, Contender, Prepared, Session};
use round::Times;

/// The report of this suite.
pub type Report = crate::report::Report<Case>;

/// Records name their writer and their number in so many bytes.
const BYTES_MIN: usize = crate::record::STAMPED_BYTES_MIN;
const BYTES_MAX: usize = 64 << 20;
const WRITERS_MAX: u32 = 1024;

/// What a record takes where it shares no block.
const BLOCK_BYTES: usize = 4096;

/// No more than this is committed in a round, so that no log outgrows disk and memory …
const ROUND_BYTES_MAX: u64 = 256 << 20;
/// … but so many commits by each thread.
const WRITER_COMMITS_MIN: u64 = 4;
/// No device commits faster; what is only memory ends its slice early.
const COMMITS_PER_SECOND_MAX: f64 = 100_000.0;

/// What is to be measured.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// Where: a directory that exists, on the filesystem of interest. The logs are made in a new
    /// directory inside it, which is removed in the end.
    pub directory: PathBuf,
    /// Is the filesystem of that directory measured? The default is yes.
    pub in_directory: bool,
    /// Filesystems to make for the run and to measure too; the default is none. Needs root.
    pub scratch: Vec<ScratchKind>,
    /// How long a record is; the default is 256, 1024, 4096 and 1048576.
    pub bytes: Vec<usize>,
    /// How many threads each process has; the default is 1, 2, 4, 8 and 16.
    pub threads: Vec<u32>,
    /// How many processes; the default is 1.
    pub processes: Vec<u32>,
    /// Whether space is made ready ahead, for the cases that can do either; the default is both.
    pub prepared: Vec<bool>,
    /// The names of the cases, in the order of their turns; empty for all. There are ratios only if
    /// `direct-dsync` is among them.
    pub cases: Vec<String>,
    /// How many rounds are counted, after one that is not; the default is 5.
    pub rounds: u32,
    /// How long each case commits in a round; the default is 0.3 seconds.
    pub slice: Duration,
    /// The options of the Vellum logs; the default is [`vellum::Options::wal`], whatever is advised
    /// for the directory.
    pub vellum: vellum::Options,
    /// No single round may take longer; the default is a minute. Then its processes are killed and
    /// the case has failed.
    pub limit: Duration,
}

impl Config {
    /// The whole matrix of one process, in `directory`.
    pub fn new(directory: impl Into<PathBuf>) -> Config {
        Config {
            directory: directory.into(),
            in_directory: true,
            scratch: Vec::new(),
            bytes: vec![256, 1024, 4096, 1 << 20],
            threads: vec![1, 2, 4, 8, 16],
            processes: vec![1],
            prepared: vec![true, false],
            cases: Vec::new(),
            rounds: 5,
            slice: Duration::from_millis(300),
            vellum: vellum::Options::wal().advice(false),
            limit: Duration::from_secs(60),
        }
    }

    /// The same for two lengths, one thread and four, prepared, and two short rounds: half a minute.
    pub fn quick(directory: impl Into<PathBuf>) -> Config {
        let mut config = Config::new(directory);
        config.bytes = vec![256, 4096];
        config.threads = vec![1, 4];
        config.prepared = vec![true];
        config.rounds = 2;
        config.slice = Duration::from_millis(100);
        config
    }

    fn check(&self) -> Result<()> {
        let is_empty = self.bytes.is_empty()
            || self.threads.is_empty()
            || self.processes.is_empty()
            || self.prepared.is_empty();
        if is_empty || self.rounds == 0 || self.slice.is_zero() {
            return Err(Error::invalid(
                "at least one length, one count of threads and of processes, one round and some \
                 time are needed",
            ));
        }
        if let Some(bytes) = self.bytes.iter().find(|b| !(BYTES_MIN..=BYTES_MAX).contains(b)) {
            return Err(Error::invalid(format!(
                "records of {bytes} bytes: from {BYTES_MIN} to {BYTES_MAX} can be verified"
            )));
        }
        let most = |counts: &[u32]| counts.iter().copied().max().unwrap_or(0);
        let has_none = self.processes.contains(&0) || self.threads.contains(&0);
        if has_none || most(&self.processes).saturating_mul(most(&self.threads)) > WRITERS_MAX {
            return Err(Error::invalid(format!("from 1 to {WRITERS_MAX} threads can commit")));
        }
        Ok(())
    }

    /// Every combination of the lists.
    fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for &bytes in &self.bytes {
            for &processes in &self.processes {
                for &threads in &self.threads {
                    let writers = u64::from(processes * threads);
                    let fast = (self.slice.as_secs_f64() * COMMITS_PER_SECOND_MAX) as u64;
                    let commits_max = fast
                        .min(ROUND_BYTES_MAX / bytes.next_multiple_of(BLOCK_BYTES) as u64)
                        .max(writers * WRITER_COMMITS_MIN);
                    cells.push(Cell { bytes, threads, processes, commits_max });
                }
            }
        }
        cells
    }

    /// The contenders that `self` asks for, in the order in which it names them.
    fn chosen<'a>(&self, all: &[&'a dyn Contender]) -> Result<Vec<&'a dyn Contender>> {
        let mut names: Vec<&str> = self.cases.iter().map(String::as_str).collect();
        if names.is_empty() {
            names = all.iter().map(|contender| contender.name()).collect();
            names.dedup();
        }
        let mut chosen = Vec::new();
        for (index, name) in names.iter().enumerate() {
            if names[..index].contains(name) {
                return Err(Error::invalid(format!("the case {name} is given twice")));
            }
            let variants: Vec<_> = all.iter().filter(|one| one.name() == *name).collect();
            if variants.is_empty() {
                return Err(Error::invalid(format!(
                    "\"{name}\" is not a case; there are {}",
                    names_of(all).join(", ")
                )));
            }
            // Only what can be either has a choice.
            let has_choice = variants.len() > 1;
            let fits =
                |one: &&&&dyn Contender| !has_choice || self.prepared.contains(&one.is_prepared());
            chosen.extend(variants.iter().filter(fits).map(|one| **one));
        }
        Ok(chosen)
    }
}

fn names_of<'a>(all: &[&'a dyn Contender]) -> Vec<&'a str> {
    let mut names: Vec<&str> = all.iter().map(|contender| contender.name()).collect();
    names.dedup();
    names
}

/// The cases of this crate.
fn built_in(options: &vellum::Options) -> Vec<Box<dyn Contender>> {
    let vellum = |is_prepared| vellum_log::Vellum { options: options.clone(), is_prepared };
    vec![
        Box::new(vellum(true)),
        Box::new(vellum(false)),
        Box::new(bare::Bare::Append),
        Box::new(bare::Bare::Fallocate),
        Box::new(bare::Bare::Overwrite),
        Box::new(direct::Direct),
    ]
}

/// The same cell with so few commits that each log fits `bytes`; none if not even a few do.
fn fitted(cell: &Cell, bytes: u64) -> Cell {
    let most = bytes / cell.bytes.next_multiple_of(BLOCK_BYTES) as u64;
    let least = u64::from(cell.writers()) * WRITER_COMMITS_MIN;
    let commits_max = if most < least { 0 } else { cell.commits_max.min(most) };
    Cell { commits_max, ..*cell }
}

/// Measures what `config` says and tells `progress` how it goes.
///
/// Forks: best called from a process with no other thread. A case that fails is in the report
/// ([`Report::failures`]) and does not end the run.
///
/// # Errors
///
/// Nothing was run if the configuration makes no sense, or if the disk would not hold it. A run
/// ends early if its directory can't be used.
///
/// # Cost
///
/// Each case takes a slice and about a tenth of a second more in each round of each cell: the whole
/// matrix about five minutes, and up to 1.5 GiB of disk.
pub fn run(config: &Config, progress: &mut dyn Progress) -> Result<Report> {
    run_with(config, &[], progress)
}

/// The same with `others` after the cases of this crate.
///
/// # Errors
///
/// As for [`run`].
pub fn run_with(
    config: &Config,
    others: &[Box<dyn Contender>],
    progress: &mut dyn Progress,
) -> Result<Report> {
    config.check()?;
    ScratchKind::check(&config.scratch)?;
    let own = built_in(&config.vellum);
    let all: Vec<&dyn Contender> = own.iter().chain(others).map(Box::as_ref).collect();
    let chosen = config.chosen(&all)?;
    let cells = config.cells();
    let conditions = Conditions::now(&config.directory, &config.vellum);
    let home = place::home(&config.directory)?;
    // All logs of a cell are there at once.
    let bytes = cells.iter().map(|cell| cell.bytes_max(BLOCK_BYTES)).max().unwrap_or(0);
    let places = Places {
        home: home.path(),
        in_directory: config.in_directory,
        scratch: &config.scratch,
        bytes: bytes * chosen.len() as u64,
    };
    places.check()?;
    let mut warnings = crate::suite::load_warning(&conditions);
    for warning in &warnings {
        progress.event(&Event::Warning(warning));
    }
    let steps =
        places.count() * cells.len() as u64 * chosen.len() as u64 * u64::from(config.rounds + 1);
    progress.event(&Event::Started { steps });
    let times = Times { slice: config.slice, limit: config.slice + config.limit };
    let (mut cases, mut noticed) = (Vec::new(), Vec::new());
    places.visit(&mut warnings, progress, &mut |place, progress| {
        for cell in &cells {
            let fitted = fitted(cell, place.usable_bytes() / chosen.len() as u64);
            if fitted.commits_max < cell.commits_max {
                let warning = format!(
                    "{}, {} B, {} threads: {} commits at most in a round, for the logs of all cases have to \
                     fit the disk",
                    place.filesystem, cell.bytes, cell.writers(), fitted.commits_max
                );
                progress.event(&Event::Warning(&warning));
                noticed.push(warning);
            }
            let cell = &fitted;
            cases.extend(contest::run(place, cell, &chosen, config.rounds, times, progress)?);
        }
        Ok(())
    })?;
    warnings.extend(noticed);
    progress.event(&Event::Finished);
    if !cases.iter().any(|case| !case.ratio_to_limit.is_empty()) {
        warnings.push(format!("no ratios: {} did not run", contest::LIMIT));
    }
    home.close().context(|| "remove the directory of the run")?;
    Ok(Report { suite: "commit", conditions, rounds: config.rounds, warnings, cases })
}

#[cfg(test)]
mod tests;
