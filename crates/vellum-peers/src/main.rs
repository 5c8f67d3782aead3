//! `vellum-bench-peers`: `vellum bench commit` with other engines among the cases; with the word
//! `append`, loggers against each other; with `latency` and `processes`, `vellum bench latency` and
//! `append` with systems in Java.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::rc::Rc;
use std::time::Duration;

use clap::{Parser, Subcommand};
use vellum_bench::foreign::Foreign;
use vellum_bench::latency::{LatencyWay, ReaderKind};
use vellum_bench::{
    Error, Event, Progress, ScratchKind, Setting, Suite, WayName, append, commit, html, latency,
    loggers,
};
use vellum_peers::java::System;

/// One engine prints what it does unless this is set, and a report on standard output is all that
/// should be there.
const QUIET: &str = "WALRUS_QUIET";

/// The cost of making a record survive a power cut, here and with other engines
///
/// As `vellum bench commit`, whose help explains the options, with the cases okaywal, raft-engine,
/// walrus, sqlite and redb beside its own.
#[derive(Parser)]
#[command(version, max_term_width = 100, args_conflicts_with_subcommands = true)]
struct Args {
    #[command(subcommand)]
    suite: Option<Kind>,
    #[command(flatten)]
    commit: CommitArgs,
}

/// The other comparisons.
#[derive(Subcommand)]
enum Kind {
    /// The cost of a log record in a program with many threads, here and with other loggers
    ///
    /// The clock runs until all records are in the file; they are read back and verified.
    Append(AppendArgs),
    /// How long does one record take until a reader in another process has it?
    ///
    /// As `vellum bench latency`, whose help explains the options, with Chronicle Queue and Aeron
    /// beside its own ways.
    Latency(LatencyArgs),
    /// The cost of a record when many processes append
    ///
    /// As `vellum bench append`, with Chronicle Queue beside its own ways: each process is a
    /// virtual machine of its own, warm before the clock starts. One more reads and checks all
    /// records afterwards.
    Processes(ProcessesArgs),
}

#[derive(clap::Args)]
struct LatencyArgs {
    /// How many records are due in a second, of all writers together
    #[arg(long, value_delimiter = ',', default_value = "10000,100000")]
    rate: Vec<u64>,
    /// How long a record is, from 16 bytes on
    #[arg(long, value_delimiter = ',', default_value = "40,128")]
    bytes: Vec<usize>,
    /// How many processes append
    #[arg(long, value_delimiter = ',', default_value = "1")]
    writers: Vec<u32>,
    /// How the reader waits: spinning, sleeping [default: both]
    #[arg(long, value_delimiter = ',')]
    reader: Vec<ReaderKind>,
    /// Which ways of `vellum bench latency`
    #[arg(long, value_delimiter = ',', default_value = "vellum-text,vellum-framed")]
    ways: Vec<LatencyWay>,
    /// Which other systems [default: all]
    #[arg(long, value_delimiter = ',')]
    cases: Vec<String>,
    /// For how long records are due in a round
    #[arg(long, value_name = "SECONDS", default_value = "1")]
    seconds: f64,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(clap::Args)]
struct ProcessesArgs {
    /// How much: PROCESSESxRECORDSxBYTES [default: those of `vellum bench append`]
    #[arg(long)]
    setting: Vec<Setting>,
    /// Which ways of `vellum bench append`
    #[arg(long, value_delimiter = ',', default_value = "vellum-framed,vellum-text,write")]
    ways: Vec<WayName>,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(clap::Args)]
struct OutputArgs {
    /// How many rounds are counted
    #[arg(long, default_value = "3")]
    rounds: u32,
    /// Where: a directory on the filesystem of interest
    #[arg(long, default_value = ".")]
    dir: PathBuf,
    /// Write the result as JSON to a file; `-` prints it instead of the table
    #[arg(long)]
    json: Option<PathBuf>,
    /// Write the result as one page with charts
    #[arg(long)]
    html: Option<PathBuf>,
}

#[derive(clap::Args)]
struct AppendArgs {
    /// How long a record is, with its newline
    #[arg(long, value_delimiter = ',', default_value = "128")]
    bytes: Vec<usize>,
    /// How many threads log
    #[arg(long, value_delimiter = ',', default_value = "1,2,4")]
    threads: Vec<u32>,
    /// How many records all of them together log in a round
    #[arg(long, default_value = "400000")]
    records: u64,
    /// Which loggers [default: all]
    #[arg(long, value_delimiter = ',')]
    cases: Vec<String>,
    /// How many rounds are counted
    #[arg(long, default_value = "5")]
    rounds: u32,
    /// Where: a directory on the filesystem of interest
    #[arg(long, default_value = ".")]
    dir: PathBuf,
    /// Write the result as JSON to a file; `-` prints it instead of the table
    #[arg(long)]
    json: Option<PathBuf>,
}

#[derive(clap::Args)]
struct CommitArgs {
    /// How long a record is
    #[arg(long, value_delimiter = ',', default_value = "256,1024,4096,1048576")]
    bytes: Vec<usize>,
    /// How many threads of each process commit
    #[arg(long, value_delimiter = ',', default_value = "1,2,4,8,16")]
    threads: Vec<u32>,
    /// How many processes commit; most engines are for one
    #[arg(long, value_delimiter = ',', default_value = "1")]
    processes: Vec<u32>,
    /// With space made ready before the clock starts, or without, for those that can do either
    #[arg(long, value_delimiter = ',', default_value = "yes,no", value_parser = ["yes", "no"])]
    prepared: Vec<String>,
    /// Which cases [default: all]
    #[arg(long, value_delimiter = ',')]
    cases: Vec<String>,
    /// How many rounds are counted
    #[arg(long, default_value = "5")]
    rounds: u32,
    /// How long each case commits in a round
    #[arg(long, value_name = "MS", default_value = "300")]
    slice_ms: u64,
    /// Where: a directory on the filesystem of interest [default: ., or none with --fs]
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Filesystems to make for the run: ext4, xfs, btrfs, tmpfs; for root only
    #[arg(long, value_delimiter = ',')]
    fs: Vec<ScratchKind>,
    /// Write the result as JSON to a file; `-` prints it instead of the table
    #[arg(long)]
    json: Option<PathBuf>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    if std::env::var_os(QUIET).is_none() {
        return restart_quietly();
    }
    match run(&args) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("vellum-bench-peers: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A process that has set a variable of its own environment is not sure to have no other thread
/// that reads it; a new one is.
fn restart_quietly() -> ExitCode {
    let program = std::env::current_exe().unwrap_or_else(|_| "vellum-bench-peers".into());
    let error = Command::new(program).args(std::env::args_os().skip(1)).env(QUIET, "1").exec();
    eprintln!("vellum-bench-peers: start again: {error}");
    ExitCode::FAILURE
}

fn run(args: &Args) -> Result<ExitCode, Error> {
    match &args.suite {
        Some(Kind::Append(args)) => measure(&args.config(), args.json.as_deref(), None),
        Some(Kind::Latency(args)) => args.output.measure(&args.config()?),
        Some(Kind::Processes(args)) => args.output.measure(&args.config()),
        None => measure(&args.commit.config(), args.commit.json.as_deref(), None),
    }
}

impl AppendArgs {
    fn config(&self) -> loggers::Config {
        let mut config = loggers::Config::new(self.dir.clone());
        config.bytes.clone_from(&self.bytes);
        config.threads.clone_from(&self.threads);
        config.records = self.records;
        config.cases.clone_from(&self.cases);
        config.others = vellum_peers::loggers::all().into_iter().map(Rc::from).collect();
        config.scope.rounds = self.rounds;
        config
    }
}

impl LatencyArgs {
    fn config(&self) -> Result<latency::Config, Error> {
        let mut config = latency::Config::new(self.output.dir.clone());
        config.rates.clone_from(&self.rate);
        config.bytes.clone_from(&self.bytes);
        config.writers.clone_from(&self.writers);
        if !self.reader.is_empty() {
            config.readers.clone_from(&self.reader);
        }
        config.ways.clone_from(&self.ways);
        config.others = self.others()?;
        config.duration = Duration::try_from_secs_f64(self.seconds)
            .map_err(|error| Error::failed(format!("--seconds {}: {error}", self.seconds)))?;
        config.scope.rounds = self.output.rounds;
        Ok(config)
    }

    fn others(&self) -> Result<Vec<Rc<dyn Foreign>>, Error> {
        let all = || System::ALL.into_iter();
        if self.cases.is_empty() {
            return Ok(all().map(|one| Rc::new(one) as Rc<dyn Foreign>).collect());
        }
        let named = |name: &String| {
            let found = all().find(|one| one.name() == name).map(|one| Rc::new(one) as _);
            found.ok_or_else(|| {
                let names: Vec<_> = System::ALL.iter().map(|one| one.name()).collect();
                Error::failed(format!("\"{name}\" is no such system: {}", names.join(", ")))
            })
        };
        self.cases.iter().map(named).collect()
    }
}

impl ProcessesArgs {
    fn config(&self) -> append::Config {
        let mut config = append::Config::new(self.output.dir.clone());
        if !self.setting.is_empty() {
            config.settings.clone_from(&self.setting);
        }
        config.ways.clone_from(&self.ways);
        config.others = vec![Rc::new(System::Chronicle)];
        config.scope.rounds = self.output.rounds;
        config
    }
}

impl OutputArgs {
    fn measure(&self, suite: &dyn Suite) -> Result<ExitCode, Error> {
        measure(suite, self.json.as_deref(), self.html.as_deref())
    }
}

impl CommitArgs {
    fn config(&self) -> commit::Config {
        let is_in_directory = self.dir.is_some() || self.fs.is_empty();
        let usual = if is_in_directory { PathBuf::from(".") } else { std::env::temp_dir() };
        let mut config = commit::Config::new(self.dir.clone().unwrap_or(usual));
        config.scope.in_directory = is_in_directory;
        config.scope.scratch.clone_from(&self.fs);
        config.bytes.clone_from(&self.bytes);
        config.threads.clone_from(&self.threads);
        config.processes.clone_from(&self.processes);
        config.prepared = self.prepared.iter().map(|word| word == "yes").collect();
        config.cases.clone_from(&self.cases);
        config.others = vellum_peers::all().into_iter().map(Rc::from).collect();
        config.scope.rounds = self.rounds;
        config.slice = Duration::from_millis(self.slice_ms);
        config
    }
}

/// Runs a suite and hands out the result; the exit code tells whether a case failed.
fn measure(suite: &dyn Suite, json: Option<&Path>, page: Option<&Path>) -> Result<ExitCode, Error> {
    let report = suite.run(&mut Lines::default())?;
    if let Some(path) = page {
        write_file(path, &html(std::slice::from_ref(&report)))?;
    }
    match json {
        Some(path) if path.as_os_str() == "-" => print!("{}", report.to_json()?),
        Some(path) => {
            print!("{}", report.table());
            write_file(path, &report.to_json()?)?;
        }
        None => print!("{}", report.table()),
    }
    let is_good = report.failures().next().is_none();
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn write_file(path: &Path, text: &str) -> Result<(), Error> {
    std::fs::write(path, text)
        .map_err(|error| Error::failed(format!("write {}: {error}", path.display())))
}

/// Tells on standard error, once for each tenth of the run, how far it has come.
#[derive(Default)]
struct Lines {
    steps: u64,
    done: u64,
    begun: Option<std::time::Instant>,
}

impl Progress for Lines {
    fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Started { steps } => {
                (self.steps, self.begun) = (*steps, Some(std::time::Instant::now()));
            }
            Event::Measuring { what } => {
                if self.done > 0 && self.done.is_multiple_of(self.steps.div_ceil(10)) {
                    let taken = self.begun.map_or(0.0, |begun| begun.elapsed().as_secs_f64());
                    let left = taken / self.done as f64 * (self.steps - self.done) as f64;
                    eprintln!("{} of {}, {left:.0} s left: {what}", self.done, self.steps);
                }
                self.done += 1;
            }
            Event::Warning(warning) => eprintln!("warning: {warning}"),
            _ => {}
        }
    }
}
