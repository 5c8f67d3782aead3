//! `vellum-bench-peers`: `vellum bench commit` with other engines among the cases, and with the
//! word `append`, loggers against each other.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::rc::Rc;
use std::time::Duration;

use clap::{Parser, Subcommand};
use vellum_bench::{Error, Event, Progress, ScratchKind, Suite, commit, loggers};

/// One engine prints what it does unless this is set, and a report on standard output is all that
/// should be there.
const QUIET: &str = "WALRUS_QUIET";

/// What does it cost to make a record survive a power cut, here and with other engines?
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

/// What else can be compared.
#[derive(Subcommand)]
enum Kind {
    /// What does a log record cost in a program with many threads, here and with other loggers?
    ///
    /// The clock runs until all records are in the file; they are read back and verified.
    Append(AppendArgs),
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
        Some(Kind::Append(args)) => measure(&args.config(), args.json.as_deref()),
        None => measure(&args.commit.config(), args.commit.json.as_deref()),
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
fn measure(suite: &dyn Suite, json: Option<&Path>) -> Result<ExitCode, Error> {
    let report = suite.run(&mut Lines::default())?;
    match json {
        Some(path) if path.as_os_str() == "-" => print!("{}", report.to_json()?),
        Some(path) => {
            print!("{}", report.table());
            std::fs::write(path, report.to_json()?)
                .map_err(|error| Error::failed(format!("write {}: {error}", path.display())))?;
        }
        None => print!("{}", report.table()),
    }
    let is_good = report.failures().next().is_none();
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
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
