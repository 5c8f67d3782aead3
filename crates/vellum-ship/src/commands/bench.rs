//! `vellum-ship bench`: the cost of shipping for commits, and the cost of a commit that waits for
//! the store.
//!
//! Two questions, each with a log and a store of its own in a directory that is removed:
//!
//! | table | what takes turns in rounds |
//! |---|---|
//! | local | threads that commit here, without a shipper and beside one |
//! | remote | threads that wait for the store, with requests that take so long |
//!
//! After each round with a shipper the log is restored from the store, and every record that was
//! acknowledged must be there once.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use clap::Args;
use vellum::{Create, Log, Lsn, Options};
use vellum_command::outcome::{Outcome, Result};
use vellum_command::samples::{Spread, quantile};
use vellum_command::values::short_span;

use crate::output;

/// The cost of shipping for commits, and the cost of a commit that waits for the store.
///
/// The store is a directory. --latency says how long each of its requests takes at least. Rounds
/// without and with a shipper take turns; the first is not counted. After each, the log is restored
/// and every acknowledged record must be there once.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  vellum bench ship --dir /mnt/data")]
pub(super) struct BenchArgs {
    /// Where: a directory on the filesystem of interest
    #[arg(long, default_value = ".")]
    dir: PathBuf,
    /// How many rounds are counted
    #[arg(long, value_name = "COUNT", default_value_t = 5)]
    rounds: u32,
    /// How long a round commits
    #[arg(long, value_name = "SPAN", default_value = "3s", value_parser = short_span)]
    slice: Duration,
    /// Bytes of a record
    #[arg(long, default_value_t = 256)]
    bytes: usize,
    /// How many threads commit here
    #[arg(long, value_name = "COUNT", default_value_t = 4)]
    threads: usize,
    /// How many threads wait for the store
    #[arg(long, value_name = "COUNT", default_value_t = 64)]
    waiting: usize,
    /// How long a request takes at least, as 20ms,50ms: a row for each
    #[arg(long, value_name = "SPANS", default_value = "20ms,50ms,100ms", value_delimiter = ',')]
    #[arg(value_parser = short_span)]
    latency: Vec<Duration>,
    /// How often at most a chunk is made, where a commit waits for it
    #[arg(long, value_name = "SPAN", default_value = "50ms", value_parser = short_span)]
    min_interval: Duration,
}

/// The number of the thread that appends the first record.
const FIRST: u64 = u64::MAX;

/// How a thread commits a record: here, or also where the log is shipped to.
type Commit = fn(&Log, Lsn) -> vellum::Result<()>;

/// The figures of one round of commits.
struct Round {
    commits: u64,
    seconds: f64,
    /// Of single commits, in nanoseconds, in ascending order.
    times: Vec<u64>,
    /// The most bytes that were durable and not shipped.
    lag: u64,
}

impl Round {
    fn rate(&self) -> f64 {
        self.commits as f64 / self.seconds
    }

    /// In microseconds.
    fn quantile(&self, share: f64) -> f64 {
        quantile(&self.times, share).map_or(f64::NAN, |nanos| nanos as f64 / 1e3)
    }
}

pub(super) fn run(args: &BenchArgs) -> Result<Outcome> {
    if args.rounds == 0 || args.threads == 0 || args.waiting == 0 || args.bytes < 24 {
        bail!("rounds, threads and waiting are at least 1, and bytes at least 24");
    }
    local(args)?;
    args.latency.iter().try_for_each(|latency| remote(args, *latency))?;
    Ok(Outcome::Good)
}

/// Commits here, without a shipper and beside one.
fn local(args: &BenchArgs) -> Result<()> {
    let (mut alone, mut beside) = (Vec::new(), Vec::new());
    for round in 0..=args.rounds {
        let runs = [(false, &mut alone), (true, &mut beside)];
        for (has_shipper, rounds) in runs {
            let place = Place::new(&args.dir)?;
            let shipper = has_shipper.then(|| place.ship(Duration::ZERO, args)).transpose()?;
            let done = place.commit(args, args.threads, has_shipper, Log::commit)?;
            if let Some(shipper) = shipper {
                shipper.end(&place)?;
            }
            if round > 0 {
                rounds.push(done);
            }
        }
    }
    let ratio = |of: &dyn Fn(&Round) -> f64| {
        spread(alone.iter().zip(&beside).map(|(alone, beside)| of(beside) / of(alone)).collect())
    };
    let threads = args.threads;
    output::print(format_args!("local commits, {threads} threads, {} bytes", args.bytes))?;
    row("  alone", &alone)?;
    row("  beside a shipper", &beside)?;
    output::print(format_args!(
        "  beside / alone: commits {}, p50 {}, p99 {}; behind at most {}",
        ratio(&Round::rate),
        ratio(&|round| round.quantile(0.5)),
        ratio(&|round| round.quantile(0.99)),
        output::bytes(beside.iter().map(|round| round.lag).max().unwrap_or(0)),
    ))?;
    Ok(())
}

/// Commits that must be in the store.
fn remote(args: &BenchArgs, latency: Duration) -> Result<()> {
    let mut rounds = Vec::new();
    for round in 0..=args.rounds {
        let place = Place::new(&args.dir)?;
        let shipper = place.ship(latency, args)?;
        let done = place.commit(args, args.waiting, true, |log, lsn| log.ship().commit(lsn))?;
        shipper.end(&place)?;
        if round > 0 {
            rounds.push(done);
        }
    }
    let waiting = args.waiting;
    output::print(format_args!("remote commits, {waiting} threads, requests of {latency:?}"))?;
    row("  remote", &rounds)
}

fn row(name: &str, rounds: &[Round]) -> Result<()> {
    let figure = |of: &dyn Fn(&Round) -> f64| spread(rounds.iter().map(of).collect());
    output::print(format_args!(
        "{name}: commits/s {}, p50 {} us, p99 {} us",
        figure(&Round::rate),
        figure(&|round| round.quantile(0.5)),
        figure(&|round| round.quantile(0.99)),
    ))?;
    Ok(())
}

/// Median, minimum and maximum.
fn spread(figures: Vec<f64>) -> String {
    let digits = |figure: f64| if figure < 10.0 { 2 } else { 0 };
    let text = |figure: f64| format!("{figure:.*}", digits(figure));
    let Some(Spread { min, median, max }) = Spread::of(&figures) else { return "–".into() };
    match figures.len() {
        1 => text(median),
        _ => format!("{} ({}–{})", text(median), text(min), text(max)),
    }
}

/// A log and a store for one round.
struct Place {
    dir: PathBuf,
    /// The committed records of each thread: number and end.
    acknowledged: Mutex<HashMap<u64, u64>>,
}

impl Place {
    fn new(dir: &Path) -> Result<Place> {
        std::fs::create_dir_all(dir)?;
        let dir = dir.join(format!("vellum-ship-bench-{}", std::process::id()));
        // A user may have made one of this name before, with links in it.
        std::fs::create_dir(&dir)?;
        std::fs::create_dir(dir.join("store"))?;
        Options::wal().exclusive(false).open(dir.join("log"))?;
        Ok(Place { dir, acknowledged: Mutex::default() })
    }

    fn url(&self) -> Result<String> {
        let store = self.dir.canonicalize()?.join("store");
        Ok(format!("file://{}", store.display()))
    }

    fn ship(&self, latency: Duration, args: &BenchArgs) -> Result<Shipper> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("ship").arg(self.dir.join("log")).arg(self.url()?);
        command.arg("--min-interval").arg(format!("{}ms", args.min_interval.as_millis()));
        let faults = format!("latency:{}ms", latency.as_millis());
        command.env("VELLUM_SHIP_FAULTS", faults).stderr(Stdio::inherit());
        Ok(Shipper { child: command.spawn()? })
    }

    /// All threads commit for a while, one record after the other.
    fn commit(
        &self,
        args: &BenchArgs,
        threads: usize,
        has_shipper: bool,
        commit: Commit,
    ) -> Result<Round> {
        let log = Options::default().create(Create::Never).open(self.dir.join("log"))?;
        if has_shipper {
            self.begin(&log, args)?;
        }
        let is_over = AtomicBool::new(false);
        let begun = Instant::now();
        let (times, lag) = std::thread::scope(|scope| {
            let (log, is_over) = (&log, &is_over);
            let committers: Vec<_> = (0..threads as u64)
                .map(|thread| scope.spawn(move || self.committer(log, args, thread, commit)))
                .collect();
            let watcher = scope.spawn(move || lag(log, is_over));
            let joined = committers.into_iter().map(|committer| {
                committer.join().unwrap_or_else(|_| Err(anyhow!("a thread panicked")))
            });
            let times: Result<Vec<Vec<u64>>> = joined.collect();
            is_over.store(true, Ordering::Relaxed);
            (times, watcher.join().unwrap_or(0))
        });
        let mut times = times?.concat();
        times.sort_unstable();
        let seconds = begun.elapsed().as_secs_f64();
        Ok(Round { commits: times.len() as u64, seconds, times, lag })
    }

    /// Waits for one record, so that looking at a new store is not part of the round.
    fn begin(&self, log: &Log, args: &BenchArgs) -> Result<()> {
        wait_for_shipper(log)?;
        let mut record = vec![b'x'; args.bytes];
        record[..8].copy_from_slice(&FIRST.to_le_bytes());
        record[8..16].fill(0);
        log.ship().commit(log.append(&record)?)?;
        self.told(FIRST, 1);
        Ok(())
    }

    /// A thread was told that so many of its records are committed.
    fn told(&self, thread: u64, records: u64) {
        let mut acknowledged = self.acknowledged.lock().unwrap_or_else(PoisonError::into_inner);
        acknowledged.insert(thread, records);
    }

    fn committer(
        &self,
        log: &Log,
        args: &BenchArgs,
        thread: u64,
        commit: Commit,
    ) -> Result<Vec<u64>> {
        let mut record = vec![b'x'; args.bytes];
        let (mut times, begun) = (Vec::new(), Instant::now());
        while begun.elapsed() < args.slice {
            record[..8].copy_from_slice(&thread.to_le_bytes());
            record[8..16].copy_from_slice(&(times.len() as u64).to_le_bytes());
            let started = Instant::now();
            let lsn = log.append(&record)?;
            commit(log, lsn)?;
            times.push(started.elapsed().as_nanos() as u64);
        }
        let mut acknowledged = self.acknowledged.lock().unwrap_or_else(PoisonError::into_inner);
        acknowledged.insert(thread, times.len() as u64);
        Ok(times)
    }

    /// The restored log has every acknowledged record once.
    fn verify(&self) -> Result<()> {
        let copy = self.dir.join("copy");
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("restore").arg(self.url()?).arg(&copy).stderr(Stdio::null());
        if !command.status()?.success() {
            bail!("the log could not be restored");
        }
        let log = Options::default().create(Create::Never).open(&copy)?;
        let mut reader = log.reader(Lsn::ZERO)?;
        let mut next: HashMap<u64, u64> = HashMap::new();
        while let Some(record) = reader.next()? {
            let number = |at: usize| {
                let bytes = record.payload.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
                bytes.map(u64::from_le_bytes).context("a record is too short")
            };
            let next = next.entry(number(0)?).or_default();
            if number(8)? != *next {
                bail!("at {} is another record than was appended", record.lsn);
            }
            *next += 1;
        }
        let acknowledged = self.acknowledged.lock().unwrap_or_else(PoisonError::into_inner);
        match *acknowledged == next {
            true => Ok(()),
            false => bail!("the restored log has not all that was acknowledged"),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Leftover files do no harm.
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// Until a remote commit would wait, and not fail for want of a shipper.
fn wait_for_shipper(log: &Log) -> Result<()> {
    until("no shipper has begun", || Ok(log.ship().state()?.pid.is_some()))
}

/// Looks each millisecond, for half a minute.
fn until(missing: &str, is_so: impl Fn() -> Result<bool>) -> Result<()> {
    let begun = Instant::now();
    while !is_so()? {
        if begun.elapsed() > Duration::from_secs(30) {
            bail!("{missing} for 30 s");
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// The most bytes that are durable and not shipped, until it is over.
fn lag(log: &Log, is_over: &AtomicBool) -> u64 {
    let mut most = 0;
    while !is_over.load(Ordering::Relaxed) {
        most = most.max(log.durable().get().saturating_sub(log.ship().end().get()));
        std::thread::sleep(Duration::from_millis(20));
    }
    most
}

/// A shipper in a process of its own.
struct Shipper {
    child: Child,
}

impl Shipper {
    /// Lets it ship the rest and end; then everything is looked at.
    fn end(mut self, place: &Place) -> Result<()> {
        let log = Options::default().create(Create::Never).open(place.dir.join("log"))?;
        until("the rest was not shipped", || Ok(log.ship().end() >= log.durable()))?;
        drop(log);
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
        if !self.child.wait()?.success() {
            bail!("the shipper failed");
        }
        place.verify()
    }
}

impl Drop for Shipper {
    fn drop(&mut self) {
        // It has ended, or something failed before.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
