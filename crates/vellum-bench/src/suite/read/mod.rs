//! Suite `read`: the cost of reading a log in order, at random or backwards, and of recovering it.
//!
//! Each case writes its log, then reads it in the page cache, in one thread; only the reading is
//! timed. All cases of a table take turns in rounds; the first round is not
//! counted. Each runs in a process of its own. After the clock has stopped, the log is read once
//! more in the same way, and every record is compared with the written one.
//!
//! How long a record takes to a reader that follows is in [`latency`](super::latency).

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use clap::builder::ArgPredicate;
use vellum_command::values;

use super::options::{from_words, len, usual};
use super::{Arena, Entrant, Plan, Scope, Suite, check_unique, settle};
use crate::bytes::size;
use crate::error::{Error, Result};
use crate::process::figures;
use crate::record::{RECORDS_MAX, Records, STAMPED_BYTES_MIN};
use crate::report::{Better, Case};
use crate::stats::ratios;

mod stored;
mod ways;

use stored::Stored;
pub use ways::ReadWay;
use ways::Table;

/// Records longer than this are no log's.
const RECORD_BYTES_MAX: usize = 16 << 20;
/// Of the data: a log, and the copy of it that is recovered, each with its headers.
const COPIES: u64 = 3;
/// For segments that are made ahead.
const SPARE_BYTES: u64 = 256 << 20;
/// No single measurement may take longer.
const LIMIT: Duration = Duration::from_secs(600);

const EXAMPLES: &str = "\
Examples:
  vellum bench read --quick
  vellum bench read --bytes 128 --ways framed,text,lines,bytes --rounds 9
  vellum bench read --total 1G --ways framed-recover --html read.html";

/// The cost of reading a log in order, at random or backwards, and of recovering it
///
/// Each case writes its log, then reads it from the page cache, in one thread. All take turns in
/// rounds, the first of which is not counted; after each, the log is read once more and every
/// record is compared with the written one. In order, logs are compared with a file that is split
/// into lines; at random, with `pread`.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = EXAMPLES,
    mut_arg("rounds", |option| usual(option, "5", "2")),
    mut_arg("quick", |option| option.help("8 MiB and two rounds, as far as nothing else is asked for")),
)]
#[non_exhaustive]
pub struct Config {
    /// How long a record is
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = len)]
    #[arg(default_value = "128,4096")]
    pub bytes: Vec<usize>,
    /// How many bytes of records a log holds
    #[arg(id = "total", long, value_name = "BYTES", value_parser = values::bytes)]
    #[arg(default_value = "64MiB", default_value_if("quick", ArgPredicate::IsPresent, "8MiB"))]
    pub total_bytes: u64,
    /// Which ways: framed, text, lines, bytes, framed-at, text-at, framed-seek, text-seek,
    /// pread, framed-back, text-back, framed-recover, text-recover [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    #[arg(default_values_t = ReadWay::ALL, hide_default_value = true)]
    pub ways: Vec<ReadWay>,
    /// Where, and how many rounds.
    #[command(flatten)]
    pub scope: Scope,
}

impl Config {
    /// All ways, five rounds, in `directory`.
    pub fn new(directory: impl Into<PathBuf>) -> Config {
        from_words(&[], directory)
    }

    /// The same with 8 MiB and two rounds: seconds.
    pub fn quick(directory: impl Into<PathBuf>) -> Config {
        from_words(&["--quick"], directory)
    }

    fn check(&self) -> Result<()> {
        if self.ways.is_empty() || self.bytes.is_empty() {
            return Err(Error::invalid("at least one way and one length of records are needed"));
        }
        check_unique(&self.ways, "way")?;
        check_unique(&self.bytes, "length")?;
        let range = STAMPED_BYTES_MIN..=RECORD_BYTES_MAX;
        for bytes in &self.bytes {
            if !range.contains(bytes) {
                return Err(Error::invalid(format!(
                    "records of {bytes} bytes: from {STAMPED_BYTES_MIN} to {RECORD_BYTES_MAX} can \
                     be verified"
                )));
            }
            if !(1..=RECORDS_MAX).contains(&(self.total_bytes / *bytes as u64)) {
                return Err(Error::invalid(format!(
                    "{} bytes are no log of records of {bytes} bytes",
                    self.total_bytes
                )));
            }
        }
        Ok(())
    }

    /// The tables that have ways, each for every length.
    fn loads(&self) -> Vec<(Table, Load)> {
        let of_table = |table: Table| {
            let load = |bytes: &usize| Load { bytes: *bytes, total_bytes: self.total_bytes };
            self.bytes.iter().map(move |bytes| (table, load(bytes)))
        };
        let tables = Table::ALL.into_iter().filter(|table| self.ways_of(*table).next().is_some());
        tables.flat_map(of_table).collect()
    }

    fn ways_of(&self, table: Table) -> impl Iterator<Item = ReadWay> {
        self.ways.iter().copied().filter(move |way| way.table() == table)
    }

    fn contest(&self, table: Table, load: Load, arena: &mut Arena<'_>) -> Result<Vec<Case>> {
        let title = |way: ReadWay| format!("{} of {}, {way}", size(load.total_bytes), load.bytes);
        let entrants = self.ways_of(table).map(|way| Entrant::new(title(way), way, Ok(())));
        let mut entrants: Vec<Entrant<ReadWay, f64>> = entrants.collect();
        arena.rounds(&mut entrants, |way, turn| load.measure(*way, turn.dir))?;
        let base = entrants.iter().find(|entrant| entrant.way.is_baseline());
        let base = base.map_or(&[][..], |entrant| entrant.samples());
        Ok(entrants.iter().map(|entrant| case(entrant, table, load, base, arena)).collect())
    }
}

impl Suite for Config {
    fn name(&self) -> &'static str {
        "read"
    }

    fn scope(&self) -> &Scope {
        &self.scope
    }

    fn scope_mut(&mut self) -> &mut Scope {
        &mut self.scope
    }

    fn plan(&self) -> Result<Plan<'_>> {
        self.check()?;
        let loads = self.loads();
        let turns = loads.iter().map(|(table, _)| self.ways_of(*table).count()).sum();
        let bytes = COPIES * self.total_bytes + SPARE_BYTES;
        Ok(Plan::new(bytes, turns, move |arena: &mut Arena<'_>| {
            let cases = loads.iter().map(|(table, load)| self.contest(*table, *load, arena));
            cases.collect::<Result<Vec<_>>>().map(|cases| cases.concat())
        }))
    }
}

/// The content of a log.
#[derive(Clone, Copy)]
struct Load {
    bytes: usize,
    total_bytes: u64,
}

impl Load {
    fn records(self) -> u64 {
        self.total_bytes / self.bytes as u64
    }

    /// Nanoseconds of one reading, verified.
    fn measure(self, way: ReadWay, dir: &Path) -> Result<f64> {
        let told = figures(LIMIT, 1, || {
            let mut stored = way.store(dir, self)?;
            // Opening a log that must be recovered syncs it: here it is not to sync records that
            // were just written.
            settle(dir)?;
            let begun = Instant::now();
            let seen = way.read(&mut stored)?;
            let nanos = begun.elapsed().as_nanos() as f64;
            self.verify(way, &mut stored, seen)?;
            Ok(vec![nanos])
        });
        told.map(|nanos| nanos[0])
    }

    /// The timed reading saw as many records as there are, and the same reading finds each of them
    /// whole, in the order in which the way reads.
    fn verify(self, way: ReadWay, stored: &mut Stored, seen: u64) -> Result<()> {
        let mut expected = Records::new(0, self.bytes);
        let mut order = way.order(stored, self.records()).into_iter();
        let mut wrong = None;
        way.verifying().visit(stored, &mut |record| {
            let sequence = order.next();
            expected.seek(sequence.unwrap_or_default());
            if sequence.is_none() || expected.next_record() != record {
                wrong.get_or_insert(sequence);
            }
        })?;
        if let Some(sequence) = wrong {
            let what = sequence.map_or("one more record".into(), |at| format!("record {at}"));
            return Err(Error::failed(format!("{what} is not what was written")));
        }
        let missing = order.count() as u64;
        if missing > 0 || seen != self.records() {
            let records = self.records();
            return Err(Error::failed(format!(
                "{seen} of {records} records were read, and {missing} not at all"
            )));
        }
        Ok(())
    }
}

/// `base` has the times of the baseline, round by round.
fn case(
    entrant: &Entrant<ReadWay, f64>,
    table: Table,
    load: Load,
    base: &[f64],
    arena: &Arena<'_>,
) -> Case {
    let records = load.records() as f64;
    let payload = records * load.bytes as f64;
    let nanos = entrant.samples();
    let case = arena
        .case(format!("{table}: records of {}", size(load.bytes as u64)))
        .key("bytes", load.bytes)
        .key("records", load.records())
        .key("way", entrant.way)
        .metric("time", "ns/record", Better::Lower, entrant.figures(|nanos| nanos / records))
        .metric("speed", "GB/s", Better::Higher, entrant.figures(|nanos| payload / nanos));
    entrant.case(match table.baseline() {
        Some(way) => {
            let name = format!("speed against {way}");
            case.metric(&name, "x", Better::Higher, ratios(base, nanos))
        }
        None => case,
    })
}

#[cfg(test)]
mod tests;
