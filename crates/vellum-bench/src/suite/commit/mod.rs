//! Suite `commit`: the cost of making a record survive a power cut.
//!
//! Every combination of record length, threads and processes is a cell. In each cell all contenders
//! commit for a short slice of time, one after the other, in rounds; the first round is not
//! counted. A round is: make or renew the log, let the filesystem settle, fork, have all threads
//! ready, clock, commit, clock, read everything back and verify it.
//!
//! The limit that all are compared with, `direct-dsync`, is no log: every thread overwrites written
//! blocks of its own with one synchronous, direct write.
//!
//! Slices are short because many machines have a budget of disk operations or wander in speed over
//! minutes: ratios are taken within a round, and their median over the rounds.

use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use clap::Args;
use clap::builder::ArgPredicate;
use vellum_command::values;

use super::options::{from_words, len, milliseconds, usual};
use super::{Arena, Plan, Scope, Suite, check_known, check_unique};
use crate::error::{Error, Result};
use crate::report::Case;

mod bare;
mod contender;
mod contest;
mod direct;
pub(crate) mod keeper;
pub(crate) mod round;
mod tally;
pub(crate) mod vellum_log;

pub(crate) use bare::write_zeros;
pub use contender::{Cell, Committer, Contender, Prepared, Session};
use round::Times;

/// Records name their writer and their number in so many bytes.
const BYTES_MIN: usize = crate::record::STAMPED_BYTES_MIN;
const BYTES_MAX: usize = 64 << 20;
const WRITERS_MAX: u32 = 1024;

/// The bytes of a record that shares no block.
const BLOCK_BYTES: usize = 4096;

/// No more than this is committed in a round, so that no log outgrows disk and memory …
const ROUND_BYTES_MAX: u64 = 256 << 20;
/// … but so many commits by each thread.
const WRITER_COMMITS_MIN: u64 = 4;
/// No device commits faster; a device that is only memory ends its slice early.
const COMMITS_PER_SECOND_MAX: f64 = 100_000.0;

const EXAMPLES: &str = "\
Examples:
  vellum bench commit --dir /mnt/data --json result.json
  vellum bench commit --fs ext4,xfs,btrfs,tmpfs --bytes 256,4096
  vellum bench commit --bytes 4096 --processes 4 --threads 4
  vellum bench commit --bytes 256 --threads 1 --prepared yes --cases vellum,direct-dsync
  vellum bench commit --bytes 256 --json - | jq '.rows | map_values(.metrics.speed.median)'";

/// The cost of making a record survive a power cut
///
/// In every combination of --bytes, --threads and --processes each case commits for a short slice
/// of time in each round, one after the other; the first round is not counted. After each, every
/// record is looked for: one that is lost, damaged or doubled fails the run. Latencies are those of
/// all rounds; speeds are compared with the limit, `direct-dsync`, in the same round: every thread
/// overwrites written blocks of its own, without a log.
///
/// The full run takes about five minutes.
#[derive(Args, Clone)]
#[command(
    after_help = EXAMPLES,
    mut_arg("rounds", |option| usual(option, "5", "2")),
    mut_arg("quick", |option| option.help(
        "256 and 4096 bytes, 1 and 4 threads, prepared, two rounds of 100 ms, as far as nothing else \
         is asked for",
    )),
)]
#[non_exhaustive]
pub struct Config {
    /// How long a record is, as 256, 4096 or 1M
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = len)]
    #[arg(
        default_value = "256,1024,4096,1M",
        default_value_if("quick", ArgPredicate::IsPresent, "256,4096")
    )]
    pub bytes: Vec<usize>,
    /// How many threads of each process commit
    #[arg(long, value_name = "COUNTS", value_delimiter = ',')]
    #[arg(default_value = "1,2,4,8,16", default_value_if("quick", ArgPredicate::IsPresent, "1,4"))]
    pub threads: Vec<u32>,
    /// How many processes commit
    #[arg(long, value_name = "COUNTS", value_delimiter = ',', default_value = "1")]
    pub processes: Vec<u32>,
    /// With space made ready before the clock starts, or without: for the cases that can do either
    #[arg(long, value_name = "YES,NO", value_delimiter = ',', value_parser = values::yes_or_no())]
    #[arg(
        default_value = "yes,no",
        default_value_if("quick", ArgPredicate::IsPresent, "yes"),
        hide_possible_values = true
    )]
    pub prepared: Vec<bool>,
    /// Which cases: vellum, bare-append, bare-fallocate, bare-overwrite, direct-dsync [default:
    /// all]
    ///
    /// There are ratios only if `direct-dsync` is among them.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub cases: Vec<String>,
    /// Other engines, after the cases of this crate; the default is none.
    #[arg(skip)]
    pub others: Vec<Rc<dyn Contender>>,
    /// How long each case commits in a round, in milliseconds
    #[arg(id = "slice-ms", long, value_name = "MS", value_parser = milliseconds)]
    #[arg(default_value = "300", default_value_if("quick", ArgPredicate::IsPresent, "100"))]
    pub slice: Duration,
    /// The options of the Vellum logs; the default is [`vellum::Options::wal`], whatever is advised
    /// for the directory.
    #[arg(skip = vellum::Options::wal().exclusive(false))]
    pub vellum: vellum::Options,
    /// No single round may take longer; the default is a minute. Then its processes are killed and
    /// the case has failed.
    #[arg(skip = Duration::from_secs(60))]
    pub limit: Duration,
    /// Where, and how many rounds.
    #[command(flatten)]
    pub scope: Scope,
}

impl Config {
    /// The whole matrix of one process, in `directory`.
    pub fn new(directory: impl Into<PathBuf>) -> Config {
        from_words(&[], directory)
    }

    /// The same for two lengths, one thread and four, prepared, and two short rounds: half a
    /// minute.
    pub fn quick(directory: impl Into<PathBuf>) -> Config {
        from_words(&["--quick"], directory)
    }

    fn check(&self) -> Result<()> {
        let is_empty = self.bytes.is_empty()
            || self.threads.is_empty()
            || self.processes.is_empty()
            || self.prepared.is_empty();
        if is_empty || self.slice.is_zero() {
            return Err(Error::invalid(
                "at least one length, one count of threads and of processes and some time are \
                 needed",
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

    /// All that there are: the cases of this crate, then the others.
    fn known(&self) -> Vec<Rc<dyn Contender>> {
        let vellum = |is_prepared| vellum_log::Vellum { options: self.vellum.clone(), is_prepared };
        let own: [Rc<dyn Contender>; 6] = [
            Rc::new(vellum(true)),
            Rc::new(vellum(false)),
            Rc::new(bare::Bare::Append),
            Rc::new(bare::Bare::Fallocate),
            Rc::new(bare::Bare::Overwrite),
            Rc::new(direct::Direct),
        ];
        own.into_iter().chain(self.others.iter().cloned()).collect()
    }

    /// Those that are asked for, in the order in which they are named.
    fn chosen(&self) -> Result<Vec<Rc<dyn Contender>>> {
        let all = self.known();
        let mut names: Vec<&str> = all.iter().map(|contender| contender.name()).collect();
        names.dedup();
        check_unique(&self.cases, "case")?;
        check_known(&self.cases, &names, "is not a case")?;
        if !self.cases.is_empty() {
            names = self.cases.iter().map(String::as_str).collect();
        }
        Ok(names.iter().flat_map(|name| self.variants(name, &all)).collect())
    }

    /// The contenders of this name: only one that comes prepared and not prepared has a choice.
    fn variants(&self, name: &str, all: &[Rc<dyn Contender>]) -> Vec<Rc<dyn Contender>> {
        let mut variants: Vec<_> = all.iter().filter(|one| one.name() == name).cloned().collect();
        if variants.len() > 1 {
            variants.retain(|one| self.prepared.contains(&one.is_prepared()));
        }
        variants
    }
}

/// The same cell with so few commits that each log fits `bytes`; none if not even a few do.
fn fitted(cell: &Cell, bytes: u64) -> Cell {
    let most = bytes / cell.bytes.next_multiple_of(BLOCK_BYTES) as u64;
    let least = u64::from(cell.writers()) * WRITER_COMMITS_MIN;
    let commits_max = if most < least { 0 } else { cell.commits_max.min(most) };
    Cell { commits_max, ..*cell }
}

impl Config {
    /// All of `chosen` against each other in a cell.
    fn contest(
        &self,
        cell: &Cell,
        chosen: &[Rc<dyn Contender>],
        arena: &mut Arena<'_>,
    ) -> Result<Vec<Case>> {
        let fitted = fitted(cell, arena.place.usable_bytes() / chosen.len() as u64);
        if fitted.commits_max < cell.commits_max {
            arena.warn(format!(
                "{}, {} B, {} threads: {} commits at most in a round, for the logs of all cases \
                 have to fit the disk",
                arena.place.filesystem,
                cell.bytes,
                cell.writers(),
                fitted.commits_max
            ));
        }
        let times = Times { slice: self.slice, limit: self.slice + self.limit };
        contest::run(&fitted, chosen, times, arena)
    }
}

impl Suite for Config {
    fn name(&self) -> &'static str {
        "commit"
    }

    fn scope(&self) -> &Scope {
        &self.scope
    }

    fn scope_mut(&mut self) -> &mut Scope {
        &mut self.scope
    }

    /// # Cost
    ///
    /// Each case takes a slice and about a tenth of a second more in each round of each cell: the
    /// whole matrix about five minutes, and up to 1.5 GiB of disk.
    fn plan(&self) -> Result<Plan<'_>> {
        self.check()?;
        let (chosen, cells) = (self.chosen()?, self.cells());
        // All logs of a cell are there at once.
        let bytes = cells.iter().map(|cell| cell.bytes_max(BLOCK_BYTES)).max().unwrap_or(0);
        let (bytes, turns) = (bytes * chosen.len() as u64, cells.len() * chosen.len());
        let plan = Plan::new(bytes, turns, move |arena: &mut Arena<'_>| {
            let contests = cells.iter().map(|cell| self.contest(cell, &chosen, arena));
            let cases = contests.collect::<Result<Vec<_>>>()?.concat();
            if cases.iter().all(|case| case.figure(contest::RATIO).is_none()) {
                arena.warn(format!("no ratios: {} did not run", contest::LIMIT));
            }
            Ok(cases)
        });
        Ok(Plan { options: self.vellum.clone(), ..plan })
    }
}

#[cfg(test)]
mod tests;
