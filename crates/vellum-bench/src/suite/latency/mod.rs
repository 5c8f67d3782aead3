//! Suite `latency`: records on a schedule, and how long one of them takes.
//!
//! Other suites append as fast as they can. Here each writer has a schedule, so many records a
//! second, and each time is counted **from the moment at which the record was due**. A writer that
//! is held up for a millisecond is late for all the records of that millisecond, and each of them
//! counts: leaving them out (coordinated omission) hides what users feel.
//!
//! | time | until |
//! |---|---|
//! | returned | the append has returned |
//! | seen | a reader in another process has it |
//! | durable | the append has returned and survives a power cut |
//!
//! ```text
//! due        |    |    |    |    |    |       writer w of n: start + (k + w / n) × n / rate
//! append      ██   █  ██████  █ █ █           late once, late for the next ones too
//! reader        ·   ·       · ·· ·            spins, or sleeps until something comes
//! ```
//!
//! The reader checks every record: one that is lost, torn, doubled or out of order fails the run.
//! Records that are made durable are read back after it.
//!
//! How long a record took because the machine stopped its writer is told apart (`timeline`).
//!
//! Writers spin until a record is due as long as each process has a core of its own; otherwise they
//! sleep.

use std::fmt;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use clap::Args;
use clap::builder::ArgPredicate;

use super::foreign::Foreign;
use super::options::{from_words, len, seconds, usual};
use super::{Arena, Entrant, Plan, Scope, Suite, check_unique};
use crate::error::{Error, Result};
use crate::names::named;
use crate::record::{RECORDS_MAX, STAMPED_BYTES_MIN};
use crate::report::Case;

mod channel;
mod round;
mod rows;
mod timeline;

use round::Sample;

const WRITERS_MAX: u32 = 256;
const BYTES_MAX: usize = 64 << 10;
const RATE_MAX: u64 = 100_000_000;
/// A pipe takes so many bytes whole, of any writer.
const PIPE_BYTES_MAX: usize = 4096;
/// The warm-up is so many times shorter than a round.
const WARM_UP_SHARE: u32 = 4;
/// Room for files that logs prepare ahead.
const AHEAD_BYTES: u64 = 256 << 20;

named! {
    /// A way for records to get from writers to a reader, or to the device.
    #[non_exhaustive]
    pub enum LatencyWay, "is not a way whose latency can be measured" {
        /// Memory of the writer, which no process reads: the cost of the machine and the clock.
        Floor = "floor",
        /// A Vellum log of framed records.
        VellumFramed = "vellum-framed",
        /// The same with a thread in each writer that keeps segments ready.
        VellumFramedKept = "vellum-framed-kept",
        /// A Vellum write-ahead log with such a thread; no record is committed.
        VellumWalKept = "vellum-wal-kept",
        /// A Vellum text log.
        VellumText = "vellum-text",
        /// `write` on a file opened with `O_APPEND`; the reader reads the file.
        Write = "write",
        /// The same with `writev`, each record in two parts.
        Writev = "writev",
        /// A pipe, which keeps nothing.
        Pipe = "pipe",
        /// A Vellum write-ahead log; each record is committed.
        VellumWal = "vellum-wal",
        /// `write` with `O_APPEND`, and `fdatasync` after each record.
        WriteFdatasync = "write-fdatasync",
    }
}

impl LatencyWay {
    /// Is each record made durable?
    pub fn is_durable(self) -> bool {
        matches!(self, LatencyWay::VellumWal | LatencyWay::WriteFdatasync)
    }
}

named! {
    /// How the reader waits.
    #[non_exhaustive]
    pub enum ReaderKind, "is not a kind of reader" {
        /// It looks again and again, on a core of its own.
        Spinning = "spinning",
        /// It sleeps until something comes.
        Sleeping = "sleeping",
    }
}

const EXAMPLES: &str = "\
Examples:
  vellum bench latency --quick
  vellum bench latency --rate 100000 --bytes 40 --writers 1 --html latency.html
  vellum bench latency --ways vellum-wal,write-fdatasync --committers 1,16";

/// Records on a schedule: how long does one of them take?
///
/// Each writer appends so many records a second. Every time is counted from the moment at which the
/// record was due, so a writer that is held up is late for all records of that time, and each of
/// them counts. Shown are the times until the append had returned, and until a reader in another
/// process had the record; for ways that make each record durable, until it was. `above floor` is
/// the first of these without the time for which the machine had stopped a writer that was not in
/// an append. Quantiles are those of all records of a round, to a part in 32.
///
/// Every combination of the lists is run, and all ways take turns in each. Every record is looked
/// for: one that is lost, torn, doubled or out of order fails the run. Writers and reader spin if
/// each has a core of its own; otherwise writers sleep until a record is due.
///
/// The full run takes about twenty minutes; --quick takes seconds.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = EXAMPLES,
    mut_arg("rounds", |option| usual(option, "3", "1")),
    mut_arg("quick", |option| option.help(
        "One writer, 10000 and 100000 a second, 128 bytes, half a second and one round, as far as \
         nothing else is asked for",
    )),
)]
#[non_exhaustive]
pub struct Config {
    /// How many records are due in a second, of all writers together
    #[arg(id = "rate", long, value_name = "COUNTS", value_delimiter = ',')]
    #[arg(
        default_value = "10000,100000,1000000",
        default_value_if("quick", ArgPredicate::IsPresent, "10000,100000")
    )]
    pub rates: Vec<u64>,
    /// The same for ways that make each record durable
    #[arg(id = "commit-rate", long, value_name = "COUNTS", value_delimiter = ',')]
    #[arg(
        default_value = "1000,10000",
        default_value_if("quick", ArgPredicate::IsPresent, "1000")
    )]
    pub commit_rates: Vec<u64>,
    /// How long a record is, from 16 bytes on
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = len)]
    #[arg(
        default_value = "40,128,1024",
        default_value_if("quick", ArgPredicate::IsPresent, "128")
    )]
    pub bytes: Vec<usize>,
    /// How many processes append
    #[arg(long, value_name = "COUNTS", value_delimiter = ',')]
    #[arg(default_value = "1,2,4", default_value_if("quick", ArgPredicate::IsPresent, "1"))]
    pub writers: Vec<u32>,
    /// How many processes append and make durable
    #[arg(long, value_name = "COUNTS", value_delimiter = ',', default_value = "16")]
    pub committers: Vec<u32>,
    /// How the reader waits: spinning, sleeping [default: both]
    #[arg(id = "reader", long, value_name = "KINDS", value_delimiter = ',')]
    #[arg(default_values_t = ReaderKind::ALL, hide_default_value = true)]
    pub readers: Vec<ReaderKind>,
    /// Which ways: floor (memory of the writer), vellum-framed, vellum-framed-kept and
    /// vellum-wal-kept (with a thread that keeps segments ready), vellum-text, write, writev, pipe;
    /// and of those that make each record durable: vellum-wal, write-fdatasync [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    #[arg(default_values_t = LatencyWay::ALL, hide_default_value = true)]
    pub ways: Vec<LatencyWay>,
    /// Other systems, after the ways, where records are seen; the default is none.
    #[arg(skip)]
    pub others: Vec<Rc<dyn Foreign>>,
    /// For how long records are due in a round
    #[arg(id = "seconds", long, value_name = "SECONDS", value_parser = seconds)]
    #[arg(default_value = "1", default_value_if("quick", ArgPredicate::IsPresent, "0.5"))]
    pub duration: Duration,
    /// The options of the Vellum logs; layout and creation are set by the ways.
    #[arg(skip)]
    pub vellum: vellum::Options,
    /// Where, and how many rounds.
    #[command(flatten)]
    pub scope: Scope,
}

impl Config {
    /// Every combination, in `directory`.
    pub fn new(directory: impl Into<PathBuf>) -> Config {
        from_words(&[], directory)
    }

    /// One writer, two rates, records of 128 bytes, half a second.
    pub fn quick(directory: impl Into<PathBuf>) -> Config {
        from_words(&["--quick"], directory)
    }

    fn check(&self) -> Result<()> {
        let Config { ways, rates, commit_rates, bytes, writers, committers, readers, .. } = self;
        check_unique(ways, "way")?;
        check_unique(rates, "rate")?;
        check_unique(commit_rates, "rate of commits")?;
        check_unique(bytes, "length of records")?;
        check_unique(writers, "number of writers")?;
        check_unique(readers, "reader")?;
        if self.loads().is_empty() || self.duration.is_zero() {
            return Err(Error::invalid(
                "at least one way, rate, length, writer and reader, and some time are needed",
            ));
        }
        check_all(writers.iter().chain(committers), 1..=WRITERS_MAX, "processes that append")?;
        check_all(bytes, STAMPED_BYTES_MIN..=BYTES_MAX, "bytes in a record")?;
        check_all(rates.iter().chain(commit_rates), 1..=RATE_MAX, "records a second")?;
        match self.loads().iter().find(|load| load.records() > RECORDS_MAX || load.records() == 0) {
            Some(load) => Err(Error::invalid(format!(
                "{} records a second for {} s: a writer appends at least one record, and at most \
                 {RECORDS_MAX}",
                load.rate,
                load.duration.as_secs_f64()
            ))),
            None => Ok(()),
        }
    }

    /// Every combination.
    fn loads(&self) -> Vec<Load> {
        let seen: Vec<_> = self.readers.iter().copied().map(Some).collect();
        let durable = [None];
        let mut loads = Vec::new();
        for (is_durable, rates, writers, readers) in [
            (false, &self.rates, &self.writers, &seen[..]),
            (true, &self.commit_rates, &self.committers, &durable[..]),
        ] {
            let is_asked = self.ways.iter().any(|way| way.is_durable() == is_durable);
            if !is_asked && (is_durable || self.others.is_empty()) {
                continue;
            }
            for (writers, bytes) in product(writers, &self.bytes) {
                for (rate, reader) in product(rates, readers) {
                    loads.push(Load { rate, bytes, writers, reader, duration: self.duration });
                }
            }
        }
        loads
    }

    fn ways_of(&self, load: &Load) -> Vec<Contestant> {
        let is_durable = load.reader.is_none();
        let fits = |way: &LatencyWay| way.is_durable() == is_durable;
        let own = self.ways.iter().copied().filter(fits).map(Contestant::Own);
        let others = self.others.iter().filter(|_| !is_durable).cloned();
        own.chain(others.map(Contestant::Foreign)).collect()
    }

    /// Warnings about the other systems, to be known before their figures are read.
    fn warnings(&self) -> Vec<String> {
        let running = self.others.iter().filter(|other| other.missing().is_none());
        let mut warnings: Vec<String> = running.filter_map(|other| other.remark()).collect();
        warnings.dedup();
        warnings
    }
}

/// A way of this crate, or another system.
#[derive(Clone, Debug)]
enum Contestant {
    Own(LatencyWay),
    Foreign(Rc<dyn Foreign>),
}

impl Contestant {
    /// Why it can't take this load.
    fn probe(&self, load: &Load) -> Result<()> {
        match self {
            Contestant::Own(LatencyWay::Pipe) if load.bytes > PIPE_BYTES_MAX => {
                let why = format!("a pipe tears records of more than {PIPE_BYTES_MAX} bytes apart");
                Err(Error::unsupported(why))
            }
            Contestant::Own(_) => Ok(()),
            Contestant::Foreign(other) => match other.missing() {
                Some(why) => Err(Error::unsupported(why)),
                None => Ok(()),
            },
        }
    }
}

impl fmt::Display for Contestant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Contestant::Own(way) => way.fmt(f),
            Contestant::Foreign(other) => other.name().fmt(f),
        }
    }
}

/// Every pair.
fn product<A: Copy, B: Copy>(one: &[A], other: &[B]) -> Vec<(A, B)> {
    one.iter().flat_map(|a| other.iter().map(move |b| (*a, *b))).collect()
}

fn check_all<'a, T: PartialOrd + std::fmt::Display + 'a>(
    all: impl IntoIterator<Item = &'a T>,
    range: std::ops::RangeInclusive<T>,
    what: &str,
) -> Result<()> {
    match all.into_iter().find(|one| !range.contains(one)) {
        Some(one) => {
            let (from, to) = range.into_inner();
            Err(Error::invalid(format!("{one} {what}: there can be from {from} to {to}")))
        }
        None => Ok(()),
    }
}

/// The records, and when they are due.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Load {
    /// Records that are due in a second, of all writers.
    rate: u64,
    bytes: usize,
    writers: u32,
    /// `None` where each record is made durable and there is no reader.
    reader: Option<ReaderKind>,
    duration: Duration,
}

impl Load {
    /// How many records each writer appends.
    fn records(&self) -> u64 {
        (self.rate as f64 * self.duration.as_secs_f64() / f64::from(self.writers)).round() as u64
    }

    /// When record `sequence` of `writer` is due, in nanoseconds after the start.
    fn due_ns(&self, writer: u32, sequence: u64) -> u64 {
        let turn = sequence * u64::from(self.writers) + u64::from(writer);
        (u128::from(turn) * 1_000_000_000 / u128::from(self.rate)) as u64
    }

    fn total_bytes(&self) -> u64 {
        self.records() * u64::from(self.writers) * self.bytes as u64
    }

    /// Does each process have a core of its own?
    fn spins(&self) -> bool {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        self.writers as usize + usize::from(self.reader.is_some()) <= cores
    }
}

impl Config {
    /// All ways under one load.
    fn contest(&self, load: &Load, arena: &mut Arena<'_>) -> Result<Vec<Case>> {
        let entrant = |way: Contestant| {
            let (name, probed) = (format!("latency {way} at {}/s", load.rate), way.probe(load));
            Entrant::new(name, way, probed)
        };
        let mut entrants: Vec<Entrant<Contestant, Sample>> =
            self.ways_of(load).into_iter().map(entrant).collect();
        arena.rounds(&mut entrants, |way, turn| {
            let mut load = *load;
            if turn.round == 0 {
                load.duration = (load.duration / WARM_UP_SHARE).max(load.shortest());
            }
            match way {
                Contestant::Own(way) => round::measure(*way, &load, &self.vellum, turn.dir),
                Contestant::Foreign(other) => round::measure_foreign(&**other, &load, turn.dir),
            }
        })?;
        Ok(rows::of(load, arena, &entrants))
    }
}

impl Load {
    /// Long enough for a record of each writer.
    fn shortest(&self) -> Duration {
        Duration::from_secs_f64(f64::from(self.writers) / self.rate as f64)
    }
}

impl Suite for Config {
    fn name(&self) -> &'static str {
        "latency"
    }

    fn scope(&self) -> &Scope {
        &self.scope
    }

    fn scope_mut(&mut self) -> &mut Scope {
        &mut self.scope
    }

    /// # Cost
    ///
    /// Each way takes the time asked for in each combination and round, and longer where it cannot
    /// keep up. Disk: the records of one turn.
    fn plan(&self) -> Result<Plan<'_>> {
        self.check()?;
        let loads = self.loads();
        let bytes = loads.iter().map(Load::total_bytes).max().unwrap_or(0);
        let turns = loads.iter().map(|load| self.ways_of(load).len()).sum();
        let compete = move |arena: &mut Arena<'_>| {
            let cases: Result<Vec<_>> =
                loads.iter().map(|load| self.contest(load, arena)).collect();
            Ok(cases?.into_iter().flatten().collect())
        };
        let plan = Plan::new(bytes * 2 + AHEAD_BYTES, turns, compete);
        let software = self.others.iter().filter_map(|other| other.software()).collect();
        Ok(Plan { options: self.vellum.clone(), software, warnings: self.warnings(), ..plan })
    }
}

#[cfg(test)]
mod tests;
