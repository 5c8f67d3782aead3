//! Suite `scale`: what do many logs, many processes and many segments cost?
//!
//! Each table has one number that grows: logs that one process has open, processes that share one
//! log, segments of one log. A figure that must not grow with it is shown as a multiple of the
//! first number of the table. Each case runs in processes of its own and takes turns with the
//! others; the first round is not counted. Afterwards every record is read back.
//!
//! The table `line` has the cost of a cache line that two cores want, and the table `simulated` the
//! consequence for more cores (`docs/benchmarks.md`).

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use clap::builder::ArgPredicate;

use super::options::{from_words, usual};
use super::{Arena, Entrant, Plan, Scope, Suite, check_unique};
use crate::error::{Context, Error, Result};
use crate::report::{Better, Case};
use crate::stats::ratios;
use crate::ways::WayName;

mod limits;
mod line;
mod logs;
mod processes;
mod segments;
mod simulated;
mod table;
mod taken;

pub use table::ScaleTable;
use table::{Entry, Figure};

/// How long a record is in all tables but `line` and `simulated`.
const RECORD_BYTES: usize = 128;
/// No single measurement may take longer.
const LIMIT: Duration = Duration::from_secs(300);

const EXAMPLES: &str = "\
Examples:
  vellum bench scale --quick
  vellum bench scale --tables logs,processes --json scale.json
  vellum bench scale --tables segments --segments 1,1000,10000 --ways vellum-text
  vellum bench scale --tables line --rounds 5
  vellum bench scale --tables simulated";

/// What do many logs, many processes and many segments cost?
///
/// One table for each: logs that one process has open, processes that share one log, segments of
/// one log. Shown are times, memory, file descriptors and mappings, and as `growth` the multiple of
/// the cost of the smallest number. A fourth table, `line`, has the cost of a cache line that two
/// cores want. All take turns in rounds, the first of which is not counted; every record is read
/// back and compared. A fifth table, `simulated`, is computed: appends of up to 64 cores.
///
/// A case that the limits of this system do not allow is left out, with the limit that would.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = EXAMPLES,
    mut_arg("rounds", |option| usual(option, "3", "1")),
    mut_arg("quick", |option| option.help(
        "Two numbers for each table and one round, as far as nothing else is asked for",
    )),
)]
#[non_exhaustive]
pub struct Config {
    /// Which tables: logs, processes, segments, line, simulated [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    #[arg(default_values_t = ScaleTable::ALL, hide_default_value = true)]
    pub tables: Vec<ScaleTable>,
    /// How many logs one process has open
    #[arg(long, value_name = "COUNTS", value_delimiter = ',', default_value = "1,10,100,1000")]
    #[arg(default_value_if("quick", ArgPredicate::IsPresent, "1,20"))]
    pub logs: Vec<u32>,
    /// How many processes share one log
    #[arg(long, value_name = "COUNTS", value_delimiter = ',', default_value = "1,10,100")]
    #[arg(default_value_if("quick", ArgPredicate::IsPresent, "1,10"))]
    pub processes: Vec<u32>,
    /// How many segments one log has
    #[arg(long, value_name = "COUNTS", value_delimiter = ',', default_value = "1,100,1000,10000")]
    #[arg(default_value_if("quick", ArgPredicate::IsPresent, "1,100"))]
    pub segments: Vec<u32>,
    /// How many records of 128 bytes are appended, to all logs or by all processes together
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    #[arg(default_value = "200000", default_value_if("quick", ArgPredicate::IsPresent, "40000"))]
    pub records: u64,
    /// Which ways to append, as for `bench append`
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    #[arg(default_value = "vellum-framed,vellum-text,write")]
    pub ways: Vec<WayName>,
    /// Where, and how many rounds.
    #[command(flatten)]
    pub scope: Scope,
}

impl Config {
    /// Up to 1000 logs, 100 processes and 10 000 segments, three rounds.
    pub fn new(directory: impl Into<PathBuf>) -> Config {
        from_words(&[], directory)
    }

    /// Two numbers for each table, and one round: seconds.
    pub fn quick(directory: impl Into<PathBuf>) -> Config {
        from_words(&["--quick"], directory)
    }

    fn check(&self) -> Result<()> {
        check_unique(&self.tables, "table")?;
        check_unique(&self.ways, "way")?;
        if self.tables.is_empty() || self.ways.is_empty() {
            return Err(Error::invalid("at least one table and one way are needed"));
        }
        self.tables.iter().try_for_each(|table| table.check(self))
    }

    /// All ways and numbers of a table against each other.
    fn contest(&self, table: ScaleTable, arena: &mut Arena<'_>) -> Result<Vec<Case>> {
        let entrant = |entry: Entry| {
            Entrant::new(
                format!("{table}: {} {}", entry.count, entry.way),
                entry,
                table.probe(entry),
            )
        };
        let mut entrants: Vec<Entrant<Entry, Vec<f64>>> =
            table.entries(self).into_iter().map(entrant).collect();
        let records = self.records;
        arena.rounds(&mut entrants, |entry, turn| table.measure(*entry, records, turn.dir))?;
        let first = |entry: Entry| entrants.iter().find(|other| other.way.way == entry.way);
        Ok(entrants.iter().map(|one| case(table, one, first(one.way), arena)).collect())
    }
}

impl Suite for Config {
    fn name(&self) -> &'static str {
        "scale"
    }

    fn scope(&self) -> &Scope {
        &self.scope
    }

    fn scope_mut(&mut self) -> &mut Scope {
        &mut self.scope
    }

    fn plan(&self) -> Result<Plan<'_>> {
        self.check()?;
        let turns = self.tables.iter().map(|table| table.turns(self)).sum();
        let bytes = self.tables.iter().map(|table| table.disk_bytes(self)).max().unwrap_or(0);
        Ok(Plan::new(bytes, turns, move |arena: &mut Arena<'_>| {
            let contest = |table: &ScaleTable| match table {
                ScaleTable::Line => line::contest(arena),
                ScaleTable::Simulated => simulated::contest(arena),
                table => self.contest(*table, arena),
            };
            Ok(self.tables.iter().map(contest).collect::<Result<Vec<_>>>()?.concat())
        }))
    }
}

/// `first` has the same way and the smallest number.
fn case(
    table: ScaleTable,
    entrant: &Entrant<Entry, Vec<f64>>,
    first: Option<&Entrant<Entry, Vec<f64>>>,
    arena: &Arena<'_>,
) -> Case {
    let Entry { way, count } = entrant.way;
    let mut case = arena.case(table.title()).key("way", way).key(table.as_str(), count);
    for (index, Figure { name, unit, better, grows }) in table.figures().iter().enumerate() {
        let samples = entrant.figures(|sample| sample[index]);
        let base = first.map_or_else(Vec::new, |first| first.figures(|sample| sample[index]));
        let growth = ratios(&samples, &base);
        case = case.metric(name, unit, *better, samples);
        if *grows {
            case = case.metric(&format!("{name}, growth"), "x", Better::Lower, growth);
        }
    }
    entrant.case(case)
}

/// What `work` returns, and how long it took, in nanoseconds.
fn timed<T>(work: impl FnOnce() -> Result<T>) -> Result<(T, f64)> {
    let begun = Instant::now();
    let result = work()?;
    Ok((result, begun.elapsed().as_nanos() as f64))
}

/// Makes the directory number `index` in `dir`.
fn subdirectory(dir: &Path, index: u32) -> Result<PathBuf> {
    let path = dir.join(index.to_string());
    fs::create_dir(&path).context(|| format!("make {}", path.display()))?;
    Ok(path)
}

#[cfg(test)]
mod tests;
