//! Suite `scale`: what do many logs, many processes and many segments cost?
//!
//! Each table has one number that grows: logs that one process has open, processes that share one
//! log, segments of one log. What must not grow with it is shown as a multiple of the first number
//! of the table. Each case runs in processes of its own and takes turns with the others; the
//! first round is not counted. Afterwards every record is read back.
//!
//! The table `line` has what a cache line costs that two cores want, for the model in
//! `docs/benchmarks.md`.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

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
mod table;
mod taken;

pub use table::ScaleTable;
use table::{Entry, Figure};

/// How long a record is in all tables but `line`.
const RECORD_BYTES: usize = 128;
/// No single measurement may take longer.
const LIMIT: Duration = Duration::from_secs(300);

/// What is to be measured.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// Where, and how many rounds; the default is 3.
    pub scope: Scope,
    /// Which tables; the default is all.
    pub tables: Vec<ScaleTable>,
    /// Which ways to append; the default is the two of Vellum, and `write`.
    pub ways: Vec<WayName>,
    /// How many logs one process has open.
    pub logs: Vec<u32>,
    /// How many processes share one log.
    pub processes: Vec<u32>,
    /// How many segments one log has.
    pub segments: Vec<u32>,
    /// How many records of 128 bytes are appended, to all logs or by all processes together.
    pub records: u64,
}

impl Config {
    /// Up to 1000 logs, 100 processes and 10 000 segments, three rounds.
    pub fn new(directory: impl Into<PathBuf>) -> Config {
        Config {
            scope: Scope::new(directory, 3),
            tables: ScaleTable::ALL.to_vec(),
            ways: vec![WayName::VellumFramed, WayName::VellumText, WayName::Write],
            logs: vec![1, 10, 100, 1000],
            processes: vec![1, 10, 100],
            segments: vec![1, 100, 1000, 10_000],
            records: 200_000,
        }
    }

    /// Two numbers for each table, and one round: seconds.
    pub fn quick(directory: impl Into<PathBuf>) -> Config {
        let mut config = Config::new(directory);
        config.scope.rounds = 1;
        (config.logs, config.processes) = (vec![1, 20], vec![1, 10]);
        (config.segments, config.records) = (vec![1, 100], 40_000);
        config
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
