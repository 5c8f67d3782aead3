//! `vellum demo`: writers append to one log, one is killed, nothing is lost.
//!
//! The parent creates the log, starts the writers and follows the log while they append; a thread
//! for each writer notes what was acknowledged. One writer stops in the middle of a record and is
//! killed there, so that it is certain that its death has to be dealt with. When all are gone the
//! parent appends a last record, which ends the reader, and everything is read once more.

mod corpus;
mod costs;
mod ledger;
mod writer;

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, ensure};
use vellum::stat::Stat;
use vellum::{Create, Log, Lsn, Options};
use vellum_command::outcome::{Outcome, Result};
use vellum_command::output;

use super::open;
use crate::args::{DemoArgs, DemoWriterArgs};
use crate::table::{Align, HEADING, Table, bytes, count};
use corpus::Corpus;
use ledger::Ledger;
use vellum_doctor::progress;
use vellum_doctor::scratch::Scratch;
use writer::{Fate, Writer};

/// If the reader sees nothing new for so long, something is stuck, which must never be.
const STUCK: Duration = Duration::from_secs(30);

/// Runs one of the writer processes.
pub(super) fn writer(args: &DemoWriterArgs) -> Result<Outcome> {
    writer::run(args)
}

pub(super) fn run(args: &DemoArgs) -> Result<Outcome> {
    let home = args.dir.clone().unwrap_or_else(std::env::temp_dir);
    fs::create_dir_all(&home).with_context(|| format!("cannot make {}", home.display()))?;
    let scratch = Scratch::new("demo", &home)?;
    let path = if args.dir.is_some() { home.join("log") } else { scratch.path().join("log") };
    let options = open::advised(open::of(Some(args.layout)));
    let log = options.create(Create::New).open(&path)?;
    let corpus = Corpus::new(args.layout);
    let run = race(args, &path, &log, &corpus)?;
    let stat = log.stat()?;
    drop(log);
    let found = inspect(&path, &corpus, &run.fates)?;
    output::print(&writers_table(&run, &found))?;
    output::tell(format_args!("{}", facts(&run, &stat)));
    let costs = match args.no_bench {
        true => None,
        false => Some(costs::measure(scratch.path(), args.writers)?),
    };
    if let Some(report) = &costs {
        output::print(&format!("\n{}", costs::table(report, args.writers)))?;
    }
    if args.dir.is_some() {
        output::tell(how_to_look(&path));
    }
    output::print(&conclusion(&run, costs.as_ref().and_then(costs::sentence)))?;
    Ok(Outcome::Good)
}

/// Events while writers wrote.
struct Race {
    fates: Vec<Fate>,
    duration: Duration,
    /// The longest time in which the reader saw nothing new.
    pause_max: Duration,
}

impl Race {
    fn acknowledged(&self) -> usize {
        self.fates.iter().map(|fate| fate.acknowledged.len()).sum()
    }

    /// Number and fate of the writer that was killed.
    fn killed(&self) -> Option<(usize, &Fate)> {
        let mut numbered = (1..).zip(&self.fates);
        numbered.find(|(_, fate)| fate.killed_at.is_some())
    }
}

/// Has the writers append while the log is followed.
fn race(args: &DemoArgs, path: &Path, log: &Log, corpus: &Corpus) -> Result<Race> {
    // One in the middle, so that there are others before and behind.
    let victim = args.writers.div_ceil(2);
    let mut writers = Vec::new();
    for number in 1..=args.writers {
        let stop_after = (number == victim).then_some(args.records / 2);
        writers.push(Writer::start(path, number, args.records, stop_after)?);
    }
    output::tell(beginning(args, path, corpus, &writers));
    let expected = args.records * u64::from(args.writers) - (args.records - args.records / 2);
    let begin = Instant::now();
    thread::scope(|scope| {
        let follower = scope.spawn(|| follow(log, corpus, args.writers, expected));
        let release = writers.iter_mut().try_for_each(Writer::release);
        let attended: Vec<_> =
            writers.into_iter().map(|writer| scope.spawn(|| writer.attend())).collect();
        let fates: Result<Vec<Fate>> = attended
            .into_iter()
            .map(|attended| attended.join().map_err(|_| anyhow!("a thread panicked"))?)
            .collect();
        let duration = begin.elapsed();
        // Ends the follower too, whatever became of the writers.
        log.append(&corpus.end())?;
        let pause_max = follower.join().map_err(|_| anyhow!("the reader panicked"))?;
        release?;
        Ok(Race { fates: fates?, duration, pause_max: pause_max? })
    })
}

/// Follows the log to its last record and checks each on the way. Returns the longest pause.
fn follow(log: &Log, corpus: &Corpus, writers: u32, expected: u64) -> Result<Duration> {
    let bar = progress::bar(expected).with_message("writers append, a reader follows");
    let mut ledger = Ledger::new(corpus, writers);
    let mut reader = log.reader(Lsn::ZERO)?;
    let end = corpus.end();
    let mut pause_max = Duration::ZERO;
    let mut seen = Instant::now();
    loop {
        let Some(record) = reader.follow(Some(STUCK))? else {
            ensure!(seen.elapsed() < STUCK, "stuck for {} s", STUCK.as_secs());
            continue;
        };
        if record.payload == end {
            break;
        }
        ledger.enter(record.lsn, record.payload).context("the reader found a fault")?;
        let now = Instant::now();
        if ledger.count() > 1 {
            pause_max = pause_max.max(now - seen);
        }
        seen = now;
        if ledger.count().is_multiple_of(1000) {
            bar.set_position(ledger.count());
        }
    }
    bar.finish_and_clear();
    Ok(pause_max)
}

/// Reads the log as a later process would: verifies it, and finds every record.
fn inspect(path: &Path, corpus: &Corpus, fates: &[Fate]) -> Result<Vec<u64>> {
    let log = Options::default().read_only(true).open(path)?;
    let report = log.verify()?;
    if let Some(damage) = report.damage.first() {
        let (file, offset) = (damage.path.display(), damage.offset);
        return Err(anyhow!("{file} is damaged at byte {offset}: {}", damage.reason));
    }
    let acknowledged: Vec<&[Lsn]> = fates.iter().map(|fate| &fate.acknowledged[..]).collect();
    let found = ledger::audit(&log, corpus, &acknowledged)?;
    let killed = fates.iter().filter(|fate| fate.killed_at.is_some()).count();
    ensure!(killed == 1, "{killed} writers were killed, one should have been");
    Ok(found)
}

fn beginning(args: &DemoArgs, path: &Path, corpus: &Corpus, writers: &[Writer]) -> String {
    let pids: Vec<String> = writers.iter().map(|writer| writer.pid().to_string()).collect();
    format!(
        "{} processes ({}) append {} records each to {},\nlines of Vellum's own sources ({} of \
         them, over and over), while this one reads.\nOne will be killed in the middle of a \
         record.\n",
        args.writers,
        pids.join(", "),
        args.records,
        path.display(),
        corpus.line_count(),
    )
}

fn writers_table(race: &Race, found: &[u64]) -> String {
    let mut table = Table::new(&[
        ("writer", Align::Right),
        ("pid", Align::Right),
        ("acknowledged", Align::Right),
        ("found", Align::Right),
        ("once, whole, in order", Align::Left),
        ("", Align::Left),
    ]);
    for (index, (fate, found)) in race.fates.iter().zip(found).enumerate() {
        table.row([
            (index + 1).to_string(),
            fate.pid.to_string(),
            fate.acknowledged.len().to_string(),
            found.to_string(),
            "yes".into(),
            fate.killed_at.map_or("", |_| "killed with SIGKILL").into(),
        ]);
    }
    format!("{HEADING}Acknowledged, and found in the log{HEADING:#}\n{}", table.render())
}

fn facts(race: &Race, stat: &Stat) -> String {
    let rate = race.acknowledged() as f64 / race.duration.as_secs_f64() / 1e6;
    let written = bytes(stat.published.get() - stat.begin.get());
    let mut text = format!(
        "\n  {written} in {:.1} s, {rate:.2} million records a second, each reported to this \
         process;\n  the longest time without a new record for the reader was {:.1} ms",
        race.duration.as_secs_f64(),
        race.pause_max.as_secs_f64() * 1e3,
    );
    if stat.repairs > 0 {
        let records = count(stat.repairs, "half record");
        let _ = write!(text, ";\n  {records} ({}) padded", bytes(stat.repaired_bytes));
    }
    text
}

fn how_to_look(path: &Path) -> String {
    let log = path.display();
    format!(
        "\nThe log stays in {log}. Look at it with\n  vellum stat {log}\n  vellum cat {log} | \
         less\n  vellum verify {log}"
    )
}

/// Three lines on the events of the race.
fn conclusion(race: &Race, costs: Option<String>) -> String {
    let (writers, records) = (race.fates.len(), race.acknowledged());
    let (number, after) = race.killed().map_or((0, 0), |(n, fate)| (n, fate.acknowledged.len()));
    let speed = costs.unwrap_or_else(|| {
        let seconds = race.duration.as_secs_f64();
        format!("Appending and reading took {seconds:.1} s; the measurement was left out.")
    });
    format!(
        "\nOf {records} acknowledged records of {writers} processes every one is in the log: once, \
         whole, in order.\nWriter {number} was killed in the middle of record {}: nobody got \
         stuck, nobody saw the half record.\n{speed}\n",
        after + 1
    )
}
