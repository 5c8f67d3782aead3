//! Suite `write`: every way to create a file and to fill it, by one thread or by many.
//!
//! | table | what is asked |
//! |---|---|
//! | `create` | what does it cost to make a file of a size? |
//! | `mmap` | how fast are stores into a file that is mapped shared? |
//! | `simple` | how fast does one thread write, by the call and the size of its pieces? |
//! | `parallel` | how fast do several threads write one file, or one each? |
//!
//! All cases of a table take turns in rounds; the first round is not counted.
//! Each runs in a process of its own, so that a mapping that can't be kept (SIGBUS) or memory that
//! is short costs a row and not the run. It makes its file, then starts the clock, writes, and
//! syncs. Everything is read back afterwards and compared, by another process. Then the file is
//! removed and the filesystem settled, so that no case pays for another.
//!
//! **The figures.** `write`: until the last write returned, in 10⁹ bytes per second.
//! `write and sync`: until all of it had reached the device, which a program waits for that wants
//! to keep it. `in all`: with the time to make the file ready (`preparation`). `cpu per GiB`: the
//! time of the process for writing and syncing; the kernel's own threads are not in it.
//!
//! The parts of this module, from the ground up:
//!
//! | module | what it does |
//! |---|---|
//! | `source`, `verify`, `clock` | what is written; is it there; how long it took |
//! | `state`, `cache`, `config` | what the file is before; the page cache; what is asked for |
//! | `entry` | one way to write |
//! | `create`, `mapped`, `simple` | the ways of three tables |
//! | `files`, `ring`, `vellum_parallel`, `parallel` | those of the fourth |
//! | `figures` | from times to cases |

use std::time::Duration;

use super::{Arena, Entrant, Plan, Scope, Suite, check_known};
use crate::bytes::size;
use crate::error::{Error, Result};
use crate::report::Case;

mod cache;
mod clock;
mod config;
mod create;
mod entry;
mod figures;
mod files;
mod mapped;
mod parallel;
mod ring;
mod simple;
mod source;
mod state;
mod vellum_parallel;
mod verify;

pub use config::{Config, Table};
use entry::{Entry, Sample, Site};
pub(crate) use source::Source;
pub use state::State;
pub(crate) use verify::stamped;

impl Suite for Config {
    fn name(&self) -> &'static str {
        "write"
    }

    fn scope(&self) -> &Scope {
        &self.scope
    }

    fn scope_mut(&mut self) -> &mut Scope {
        &mut self.scope
    }

    /// # Cost
    ///
    /// The default writes and reads 330 GiB in each of four rounds, in as many cases: half an hour
    /// to an hour on each filesystem, by its speed. [`Config::quick`] takes less than half a
    /// minute.
    fn plan(&self) -> Result<Plan<'_>> {
        self.check()?;
        let (most, reason) = self.fit(&self.scope.directory)?;
        let contests = contests(self, most)?;
        let turns = contests.iter().map(|contest| contest.entries.len()).sum();
        let plan = Plan::new(self.needed(most), turns, move |arena: &mut Arena<'_>| {
            let cases = contests.iter().map(|contest| contest.run(self.limit, arena));
            Ok(cases.collect::<Result<Vec<_>>>()?.concat())
        });
        Ok(Plan { warnings: Vec::from_iter(reason), ..plan })
    }
}

/// All ways of a table against each other, with files of one size.
struct Contest {
    entries: Vec<Entry>,
    bytes: u64,
    /// Is the size in the heading? Rows of other sizes are not there to be compared.
    names_size: bool,
}

impl Contest {
    /// Each way runs in a process of its own.
    fn run(&self, limit: Duration, arena: &mut Arena<'_>) -> Result<Vec<Case>> {
        let Contest { entries, bytes, names_size } = self;
        let entrants = entries.iter().map(|entry| Entrant::new(entry.title(), entry, Ok(())));
        let mut entrants: Vec<Entrant<&Entry, Sample>> = entrants.collect();
        arena.rounds(&mut entrants, |entry, turn| {
            let site = Site { dir: turn.dir, bytes: *bytes, round: turn.round };
            let sample = Sample::told_by(limit, || entry.job.run(&site))?;
            entry.job.verify(&site)?;
            Ok(sample)
        })?;
        let case = |entrant| {
            let mut case = figures::case(&entrants, entrant, *bytes, arena);
            if *names_size {
                case.table = format!("{}, {}", case.table, size(*bytes));
            }
            case
        };
        Ok(entrants.iter().map(case).collect())
    }
}

/// The ways that are asked for, by table; no file is longer than `most`.
fn contests(config: &Config, most: u64) -> Result<Vec<Contest>> {
    let bytes = config.bytes.min(most);
    let one = |entries| vec![Contest { entries, bytes, names_size: false }];
    let of_table = |table: &Table| match table {
        Table::Create => creations(config, most),
        Table::Mmap => one(mapped::entries(config)),
        Table::Simple => one(simple::entries(config, bytes)),
        Table::Parallel => one(parallel::entries(config)),
    };
    let mut contests: Vec<Contest> = config.tables.iter().flat_map(of_table).collect();
    let known: Vec<&str> =
        contests.iter().flat_map(|contest| entry::ways(&contest.entries)).collect();
    check_known(&config.ways, &known, "is not a way here")?;
    if !config.ways.is_empty() {
        let is_asked = |entry: &Entry| config.ways.iter().any(|way| way == entry.way());
        contests.iter_mut().for_each(|contest| contest.entries.retain(is_asked));
    }
    if contests.iter().all(|contest| contest.entries.is_empty()) {
        return Err(Error::invalid("no case is left of what is asked for"));
    }
    Ok(contests)
}

/// The table `create`, for each size that has room.
fn creations(config: &Config, most: u64) -> Vec<Contest> {
    let sizes = if config.sizes.is_empty() { &[config.bytes][..] } else { &config.sizes };
    let mut sizes: Vec<u64> = sizes.iter().map(|bytes| *bytes.min(&most)).collect();
    sizes.dedup();
    let names_size = sizes.len() > 1;
    let contest = |bytes| Contest { entries: create::entries(), bytes, names_size };
    sizes.into_iter().map(contest).collect()
}

#[cfg(test)]
mod tests;
