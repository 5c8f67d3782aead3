//! Suite `loggers`: many threads of one process log into one file; the cost of a record.
//!
//! Every combination of record length and threads is a cell. In each cell every logger runs once in
//! each round, one after the other; the first round is not counted. A round is: settle the
//! filesystem, fork, open, have all threads ready, clock, log, flush, clock, read everything back
//! and verify it, delete.
//!
//! **The clock runs until the bytes are in the file.** A logger that only hands records to a thread
//! of its own is not done when its calls return; until when they took is told beside it. A logger
//! may drop records if it counts them: they are told too, and the rest has to be there.

use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use super::{Arena, Entrant, Plan, Scope, Suite, check_known};
use crate::error::{Error, Result};
use crate::record;
use crate::report::{Better, Case};
use crate::stats::ratios;

mod contender;
mod own;
mod round;

pub use contender::{Contender, Kept, Logger, Session, VELLUM_DIR};
use round::{Cell, Sample, measure};

/// The baseline of the ratios.
const BASELINE: &str = "write";

/// No such machine is meant.
const THREADS_MAX: u32 = 1024;

/// The choices of a measurement.
#[derive(Clone)]
#[non_exhaustive]
pub struct Config {
    /// Where, and how many rounds; the default is 5.
    pub scope: Scope,
    /// How long a record is, with its newline; the default is 128.
    pub bytes: Vec<usize>,
    /// How many threads log; the default is 1, 2 and 4.
    pub threads: Vec<u32>,
    /// How many records all of them together log in a round; the default is 400 000.
    pub records: u64,
    /// The names of the loggers, in the order of their turns; empty for all. There are ratios only
    /// if `write` is among them.
    pub cases: Vec<String>,
    /// Other loggers, after those of this crate; the default is none.
    pub others: Vec<Rc<dyn Contender>>,
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
            scope: Scope::new(directory, 5),
            bytes: vec![128],
            threads: vec![1, 2, 4],
            records: 400_000,
            cases: Vec::new(),
            others: Vec::new(),
            vellum: vellum::Options::default(),
            limit: Duration::from_secs(120),
        }
    }

    fn check(&self) -> Result<()> {
        if self.bytes.is_empty() || self.threads.is_empty() {
            return Err(Error::invalid("at least one length and one count of threads are needed"));
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

    /// The loggers that are asked for, in the order in which they are named.
    fn chosen(&self) -> Result<Vec<Rc<dyn Contender>>> {
        let own: [Rc<dyn Contender>; 2] =
            [Rc::new(own::VellumText { options: self.vellum.clone() }), Rc::new(own::Write)];
        let all: Vec<_> = own.into_iter().chain(self.others.iter().cloned()).collect();
        if self.cases.is_empty() {
            return Ok(all);
        }
        let known: Vec<&str> = all.iter().map(|one| one.name()).collect();
        check_known(&self.cases, &known, "is not a logger")?;
        let named = |name: &String| all.iter().find(|one| one.name() == name).cloned();
        Ok(self.cases.iter().filter_map(named).collect())
    }

    /// All of `chosen` against each other in a cell.
    fn contest(
        &self,
        cell: Cell,
        chosen: &[Rc<dyn Contender>],
        arena: &mut Arena<'_>,
    ) -> Result<Vec<Case>> {
        let entrant = |contender: &Rc<dyn Contender>| {
            let Cell { threads, bytes, .. } = cell;
            let name = format!("{threads} threads {bytes} B {}", contender.name());
            let missing = contender.missing().map_or(Ok(()), |why| Err(Error::unsupported(why)));
            Entrant::new(name, Rc::clone(contender), missing)
        };
        let mut entrants: Vec<Entrant<_, Sample>> = chosen.iter().map(entrant).collect();
        arena.rounds(&mut entrants, |contender, turn| {
            measure(&**contender, cell, turn.dir, self.limit)
        })?;
        let base = entrants.iter().find(|entrant| entrant.way.name() == BASELINE);
        let base = base.map_or_else(Vec::new, |entrant| entrant.figures(Sample::wall_ns));
        Ok(entrants.iter().map(|entrant| case(entrant, cell, &base, arena)).collect())
    }
}

impl Suite for Config {
    fn name(&self) -> &'static str {
        "loggers"
    }

    fn scope(&self) -> &Scope {
        &self.scope
    }

    fn scope_mut(&mut self) -> &mut Scope {
        &mut self.scope
    }

    fn plan(&self) -> Result<Plan<'_>> {
        self.check()?;
        let (chosen, cells) = (self.chosen()?, self.cells());
        let software = software(&chosen);
        let bytes = cells.iter().map(|cell| cell.setting().total_bytes()).max().unwrap_or(0);
        let turns = cells.len() * chosen.len();
        let plan = Plan::new(bytes, turns, move |arena: &mut Arena<'_>| {
            let contests = cells.iter().map(|cell| self.contest(*cell, &chosen, arena));
            Ok(contests.collect::<Result<Vec<_>>>()?.concat())
        });
        Ok(Plan { options: self.vellum.clone(), software, ..plan })
    }
}

/// `base` is what `write` needed, round by round, if it ran well.
fn case(
    entrant: &Entrant<Rc<dyn Contender>, Sample>,
    cell: Cell,
    base: &[f64],
    arena: &Arena<'_>,
) -> Case {
    let Cell { threads, records, bytes } = cell;
    let (lower, total) = (Better::Lower, cell.total_records() as f64);
    let wall = entrant.figures(Sample::wall_ns);
    let calls = entrant.figures(|sample| sample.calls_ns as f64 / total);
    let dropped = entrant.figures(|sample| sample.dropped as f64 / total * 100.0);
    let case = arena
        .case(format!("{threads} threads × {records} records × {bytes} B"))
        .key("threads", threads)
        .key("records", records)
        .key("bytes", bytes)
        .key("logger", entrant.way.name())
        .metric("time", "ns/record", lower, wall.iter().map(|ns| ns / total).collect())
        .metric("speed against write", "x", Better::Higher, ratios(base, &wall))
        .metric("until the calls returned", "ns/record", lower, calls)
        .metric("dropped", "%", lower, dropped);
    entrant.case(case)
}

/// Of those that take part, each once.
fn software(chosen: &[Rc<dyn Contender>]) -> Vec<String> {
    let mut software: Vec<String> = chosen.iter().filter_map(|one| one.software()).collect();
    software.sort();
    software.dedup();
    software
}

#[cfg(test)]
mod tests;
