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
//! | `trouble`, `source`, `verify`, `clock` | errors; what is written; is it there; how long it took |
//! | `state`, `cache`, `config` | what the file is before; the page cache; what is asked for |
//! | `case` | one way to write |
//! | `create`, `mapped`, `simple` | the ways of three tables |
//! | `files`, `ring`, `vellum_parallel`, `parallel` | those of the fourth |
//! | `rounds`, `figures` | all of them in turn; from times to rows |

use crate::conditions::Conditions;
use crate::error::{Context, Error, Result};
use crate::place::{self, Place, Places};
use crate::progress::{Event, Progress};
use crate::report::place_name;
use crate::scratch::ScratchKind;

mod cache;
mod case;
mod clock;
mod config;
mod create;
mod figures;
mod files;
mod mapped;
mod parallel;
mod ring;
mod rounds;
mod simple;
mod source;
mod state;
mod trouble;
mod vellum_parallel;
mod verify;

use case::Case;
pub use config::{Config, Table};
use rounds::Contest;
pub use state::State;

/// The report of this suite.
pub type Report = crate::report::Report<crate::report::Row>;

/// Measures what `config` says and tells `progress` how it goes.
///
/// Forks: best called from a process with no other thread. A case that fails is in the report and
/// does not end the run.
///
/// # Errors
///
/// Nothing was run if the configuration makes no sense, or if the disk holds no file at all. A run
/// ends early if its directory can't be used.
///
/// # Cost
///
/// The default writes and reads 330 GiB in each of four rounds, in as many cases: half an hour
/// to an hour on each filesystem, by its speed. [`Config::quick`] takes less than half a minute.
pub fn run(config: &Config, progress: &mut dyn Progress) -> Result<Report> {
    config.check()?;
    ScratchKind::check(&config.scratch)?;
    let conditions = Conditions::now(&config.directory, &vellum::Options::new());
    let home = place::home(&config.directory)?;
    let (bytes, reason) = config.fit(home.path())?;
    let tables = tables(config, bytes)?;
    let places = Places {
        home: home.path(),
        in_directory: config.in_directory,
        scratch: &config.scratch,
        bytes: Config::needed(bytes),
    };
    places.check()?;
    let mut warnings = crate::suite::load_warning(&conditions);
    warnings.extend(reason);
    for warning in &warnings {
        progress.event(&Event::Warning(warning));
    }
    let count: usize = tables.iter().map(Vec::len).sum();
    let steps = places.count() * count as u64 * u64::from(config.rounds + 1);
    progress.event(&Event::Started { steps });
    let mut cases = Vec::new();
    places.visit(&mut warnings, progress, &mut |place, progress| {
        let contest = contest(config, place, bytes);
        for table in &tables {
            let entrants = contest.run(table, progress)?;
            let name = place_name(place.filesystem, place.is_scratch);
            cases.extend(figures::rows(&entrants, &name, bytes));
        }
        Ok(())
    })?;
    progress.event(&Event::Finished);
    home.close().context(|| "remove the directory of the run")?;
    Ok(Report { suite: "write", conditions, rounds: config.rounds, warnings, cases })
}

fn contest<'a>(config: &Config, place: &'a Place<'_>, bytes: u64) -> Contest<'a> {
    Contest {
        dir: place.dir,
        filesystem: place.filesystem,
        bytes,
        rounds: config.rounds,
        limit: config.limit,
    }
}

/// The cases that are asked for, by table.
fn tables(config: &Config, bytes: u64) -> Result<Vec<Vec<Case>>> {
    let cases = |table: &Table| match table {
        Table::Create => create::cases(),
        Table::Mmap => mapped::cases(config),
        Table::Simple => simple::cases(config, bytes),
        Table::Parallel => parallel::cases(config),
    };
    let tables: Vec<Vec<Case>> = config.tables.iter().map(cases).collect();
    for way in &config.ways {
        let known: Vec<&str> = tables.iter().flat_map(|table| case::ways(table)).collect();
        if !known.contains(&way.as_str()) {
            let known = known.join(", ");
            return Err(Error::invalid(format!("\"{way}\" is not a way here; there are {known}")));
        }
    }
    let tables: Vec<Vec<Case>> =
        tables.into_iter().map(|table| case::select(table, config)).collect();
    if tables.iter().all(Vec::is_empty) {
        return Err(Error::invalid("no case is left of what is asked for"));
    }
    Ok(tables)
}

#[cfg(test)]
mod tests;
