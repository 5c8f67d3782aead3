//! Suite `write`: every way to create a file and to fill it, by one thread or by many.
//!
//! | table | what is asked |
//! |---|---|
//! | `create` | what does it cost to make a file of a size? |
//! | `mmap` | how fast are stores into a file that is mapped shared? |
//! | `simple` | how fast does one thread write, by the call and the size of its pieces? |
//! | `parallel` | how fast do several threads write one file, or one each? |
//!
//! All cases of a table take turns in rounds (A B C … A B C …); the first round is not counted.
//! Each runs in a process of its own, so that a mapping that can't be kept (SIGBUS) or memory that
//! is short costs a row and not the run. It makes its file, then starts the clock, writes, and
//! syncs. Everything is read back afterwards and compared, by another process. Then the file is
//! removed and the filesystem settled, so that no case pays for another.
//!
//! **What is told.** `write`: until the last write returned, in 10⁹ bytes per second. `write and
//! sync`: until all of it had reached the device, which is what a program waits for that wants to
//! keep it. `in all`: with what it took to make the file ready (`preparation`). `cpu per GiB`: what
//! the process used for writing and syncing; the kernel's own threads are not in it.
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
        let (bytes, reason) = self.fit(&self.scope.directory)?;
        let tables = tables(self, bytes)?;
        let turns = tables.iter().map(Vec::len).sum();
        let plan = Plan::new(Config::needed(bytes), turns, move |arena: &mut Arena<'_>| {
            let contests = tables.iter().map(|table| contest(table, bytes, self.limit, arena));
            Ok(contests.collect::<Result<Vec<_>>>()?.concat())
        });
        Ok(Plan { warnings: Vec::from_iter(reason), ..plan })
    }
}

/// All ways of a table against each other, each in a process of its own.
fn contest(
    entries: &[Entry],
    bytes: u64,
    limit: Duration,
    arena: &mut Arena<'_>,
) -> Result<Vec<Case>> {
    let entrants = entries.iter().map(|entry| Entrant::new(entry.title(), entry, Ok(())));
    let mut entrants: Vec<Entrant<&Entry, Sample>> = entrants.collect();
    arena.rounds(&mut entrants, |entry, turn| {
        let site = Site { dir: turn.dir, bytes, round: turn.round };
        let sample = Sample::told_by(limit, || entry.job.run(&site))?;
        entry.job.verify(&site)?;
        Ok(sample)
    })?;
    let case = |entrant| figures::case(&entrants, entrant, bytes, arena);
    Ok(entrants.iter().map(case).collect())
}

/// The ways that are asked for, by table.
fn tables(config: &Config, bytes: u64) -> Result<Vec<Vec<Entry>>> {
    let entries = |table: &Table| match table {
        Table::Create => create::entries(),
        Table::Mmap => mapped::entries(config),
        Table::Simple => simple::entries(config, bytes),
        Table::Parallel => parallel::entries(config),
    };
    let mut tables: Vec<Vec<Entry>> = config.tables.iter().map(entries).collect();
    let known: Vec<&str> = tables.iter().flat_map(|table| entry::ways(table)).collect();
    check_known(&config.ways, &known, "is not a way here")?;
    if !config.ways.is_empty() {
        let is_asked = |entry: &Entry| config.ways.iter().any(|way| way == entry.way());
        tables.iter_mut().for_each(|table| table.retain(is_asked));
    }
    if tables.iter().all(Vec::is_empty) {
        return Err(Error::invalid("no case is left of what is asked for"));
    }
    Ok(tables)
}

#[cfg(test)]
mod tests;
