//! The command line as clap reads it: words turned into values, nothing acted on.
//!
//! The texts here are the help and the man pages. Options that shape a log have no defaults: an
//! option that the user leaves out is left to the log.

mod advise;
mod bench;
mod examples;
mod internal;
mod policy;
mod read;
mod upkeep;
mod values;

use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{
    Args, ColorChoice, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum, ValueHint,
};
use vellum::{Fill, Layout, Preallocate};
use vellum_command::help::Shell;
use vellum_doctor::DoctorArgs;
use vellum_doctor::scratch::INTERNAL;

use crate::shipping;

pub(crate) use advise::AdviseArgs;
pub(crate) use bench::{
    BenchAllArgs, BenchArgs, BenchCompareArgs, BenchOutputArgs, BenchPlaceArgs, BenchPublishArgs,
    BenchReportArgs, BenchSuite, BenchSuiteArgs, MEASUREMENTS, Measurement,
};
pub(crate) use internal::{DemoWriterArgs, InternalCommand};
pub(crate) use policy::PolicyArgs;
pub(crate) use read::{CatArgs, TailArgs};
pub(crate) use upkeep::{
    CheckpointArgs, CursorArgs, MeasureWhen, PrepareArgs, RepairArgs, RotateArgs, TrimArgs,
    TruncateArgs,
};
pub(crate) use values::{Lines, Position};

/// Reads the command line of this process. One that is wrong, or asks for help, is an error.
pub(crate) fn parse() -> Result<Command, clap::Error> {
    if std::env::args_os().nth(1).is_some_and(|word| word == INTERNAL) {
        return Ok(Command::Internal(internal::parse()));
    }
    let words = values::lines_as_options(std::env::args_os());
    let command =
        CommandLine::from_arg_matches(&command_line().try_get_matches_from(words)?)?.command;
    if let Command::Append(AppendArgs {
        commit: Some(CommitWhen::None),
        commit_interval: Some(_),
        ..
    }) = command
    {
        let message = "--commit-interval commits and --commit none does not; leave out one of them";
        return Err(CommandLine::command().error(ErrorKind::ArgumentConflict, message));
    }
    Ok(command)
}

/// What help, man pages and completions list: the commands of `vellum-ship` too.
pub(crate) fn command_line() -> clap::Command {
    shipping::listed(CommandLine::command())
}

/// Many processes append to one log, at the speed of memory.
///
/// A log is a directory of files. Any number of processes append to it at the same time, without
/// a server. A record that was acknowledged survives the death of every process; a process that
/// is killed costs the others nothing.
#[derive(Debug, Parser)]
#[command(name = "vellum", version, after_help = examples::VELLUM, max_term_width = 100)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Append(AppendArgs),
    Cat(CatArgs),
    Tail(TailArgs),
    Stat(StatArgs),
    Verify(VerifyArgs),
    Prepare(PrepareArgs),
    Checkpoint(CheckpointArgs),
    Cursor(CursorArgs),
    Rotate(RotateArgs),
    Trim(TrimArgs),
    Truncate(TruncateArgs),
    Repair(RepairArgs),
    Bench(BenchArgs),
    Advise(AdviseArgs),
    Doctor(DoctorArgs),
    Demo(DemoArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
    #[command(skip)]
    Internal(InternalCommand),
}

/// Append records from standard input, one a line
///
/// Creates the log if there is none. An existing log is joined as it is: options that contradict
/// it are refused. In a framed log the newline is not part of the record, and a record may be
/// empty; in a text log every record ends in a newline, which a last line without one gets.
///
/// SIGTERM, SIGINT or SIGHUP asks it to end. The program at the other end of a pipe may have got
/// the same signal, and say its last things now. So the input is read to its end, as long as
/// --stop-timeout allows. Then the log is closed, and the signal takes its course. A second
/// SIGTERM or SIGINT ends it at once.
///
/// A record that was appended survives the death of every process. Once it is committed, it
/// survives a power cut too. A new log whose records are committed is made for that: framed,
/// filled the staged way, unless the options say otherwise.
#[derive(Args, Debug)]
#[command(after_help = examples::APPEND)]
pub(crate) struct AppendArgs {
    /// The log's directory
    #[arg(value_hint = ValueHint::AnyPath)]
    pub(crate) log: PathBuf,
    /// Records end in a NUL byte instead of a newline, and may hold newlines
    #[arg(short = '0', long)]
    pub(crate) null: bool,
    /// Print the position (LSN) of each record on a line of its own once it is appended, or
    /// committed where records are
    #[arg(long)]
    pub(crate) ack: bool,
    /// When to make records survive a power cut [default: none, or end with --commit-interval]
    #[arg(long, value_name = "WHEN", value_enum)]
    pub(crate) commit: Option<CommitWhen>,
    /// Commit a record no later than so long after it was appended, as 100ms
    #[arg(long, value_name = "SPAN", value_parser = values::millis)]
    pub(crate) commit_interval: Option<Duration>,
    /// Cut a record of the input that is longer into several; so much memory is used at most
    #[arg(long, value_name = "BYTES", default_value = "16M", value_parser = values::bytes)]
    pub(crate) record_bytes_max: u64,
    /// After a signal that asks to end, read a pipe or a socket for so long, unless it ends before
    ///
    /// With 0, and from a file or a terminal, the available input is read and no more. An append
    /// that has to wait is given up two seconds later.
    #[arg(long, value_name = "SPAN", default_value = "10s", value_parser = values::short_span)]
    pub(crate) stop_timeout: Duration,
    #[command(flatten)]
    pub(crate) shape: ShapeArgs,
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,
}

impl AppendArgs {
    /// When to commit, said or not.
    pub(crate) fn commit_when(&self) -> CommitWhen {
        let unsaid = self.commit_interval.map_or(CommitWhen::None, |_| CommitWhen::End);
        self.commit.unwrap_or(unsaid)
    }
}

/// When `vellum append` commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CommitWhen {
    /// Each record before the next is read
    Every,
    /// All of them at the end of the input
    End,
    /// Not at all
    None,
}

/// What shapes the files of a new log; `None` leaves it to the log.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Options for a new log")]
pub(crate) struct ShapeArgs {
    /// How records lie in the files: in frames with checksums, or as plain text [new log: text with
    /// an option that only text logs have, framed without]
    #[arg(long, value_parser = values::layout())]
    pub(crate) layout: Option<Layout>,
    /// Bytes of log in each segment file, as 4096, 64KiB or 1GiB [new log: 64MiB]
    #[arg(long, value_name = "BYTES", value_parser = values::bytes)]
    pub(crate) segment_bytes: Option<u64>,
    /// How file space is made ready ahead of need [new log: auto]
    #[arg(long, value_name = "HOW", value_parser = values::preallocate())]
    pub(crate) preallocate: Option<Preallocate>,
    /// How records get into the files [new log: pwrite for text, so that every tool can read it;
    /// mapped, where that is safe, for others]
    #[arg(long, value_name = "HOW", value_parser = values::fill())]
    pub(crate) fill: Option<Fill>,
    /// Put the time and the writer before each record of a framed log, in 16 bytes: `cat --json`
    /// prints them, and `cat --since` finds records by them
    #[arg(long)]
    pub(crate) envelope: bool,
}

/// Show the state of a log: sizes, commits, files, participants; of many logs, a line for each
///
/// Needs no more than read permission and changes nothing. With --json or --positions it tells
/// positions too. They are bytes of the log's endless address space; begin, durable, published and
/// tail go back only when the epoch grows: after a power cut, and when the log is truncated.
///
/// Of many logs, and of a directory with logs below it, there is a line for each: its size on disk,
/// the bytes that a power cut may take, how far the slowest reader and the shipper are behind, and
/// its troubles. It exits with 3 if a file of one is damaged or missing.
#[derive(Args, Debug)]
#[command(after_help = examples::STAT)]
pub(crate) struct StatArgs {
    /// The directories of logs, or directories that have logs below them
    #[arg(value_name = "LOG", required = true, value_hint = ValueHint::AnyPath)]
    pub(crate) logs: Vec<PathBuf>,
    /// Tell positions (LSNs) too
    #[arg(long)]
    pub(crate) positions: bool,
    /// Show it every second until killed, with the records since the second before
    #[arg(short, long)]
    pub(crate) watch: bool,
    #[command(flatten)]
    pub(crate) color: ColorArgs,
    /// Print an object of JSON for each log, one a line
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the numbers in the text format of Prometheus
    #[arg(long, conflicts_with_all = ["json", "watch", "positions"])]
    pub(crate) prometheus: bool,
}

/// Whether text has styles.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct ColorArgs {
    /// When to print styles; auto does it on a terminal, as the environment says (NO_COLOR,
    /// CLICOLOR_FORCE)
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: ColorChoice,
}

/// Read every byte of a log and report damage
///
/// Never writes. Prints a line for each thing that is wrong, FILE:OFFSET: lsn LSN: REASON, and
/// nothing for a good log; exits with 3 if there is damage.
#[derive(Args, Debug)]
#[command(after_help = examples::VERIFY)]
pub(crate) struct VerifyArgs {
    /// The log's directory
    #[arg(value_hint = ValueHint::AnyPath)]
    pub(crate) log: PathBuf,
    /// Print and say nothing: the exit code tells
    #[arg(short, long, conflicts_with = "json")]
    pub(crate) quiet: bool,
    /// Print one object of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// See it work: writers append to one log, one is killed, nothing is lost
///
/// Processes append the lines of this program's own sources to a new log and report each record
/// that was acknowledged. One of them is killed in the middle of a record. Then every
/// acknowledged record is looked for: is it there, once, whole, in order? In the end, ways of
/// appending are measured against each other.
#[derive(Args, Debug)]
#[command(after_help = examples::DEMO)]
pub(crate) struct DemoArgs {
    /// Where to leave the log [default: a temporary directory, removed at the end]
    #[arg(value_hint = ValueHint::DirPath)]
    pub(crate) dir: Option<PathBuf>,
    /// How many processes append
    #[arg(long, value_name = "COUNT", default_value = "4")]
    #[arg(value_parser = clap::value_parser!(u32).range(2..=64))]
    pub(crate) writers: u32,
    /// How many records each of them appends
    #[arg(long, value_name = "COUNT", default_value = "500000")]
    #[arg(value_parser = clap::value_parser!(u64).range(2..=100_000_000))]
    pub(crate) records: u64,
    /// How records lie in the files
    #[arg(long, default_value = "framed", value_parser = values::layout())]
    pub(crate) layout: Layout,
    /// Leave out the measurement
    #[arg(long)]
    pub(crate) no_bench: bool,
}

/// Print a completion script for a shell
#[derive(Args, Debug)]
#[command(after_help = examples::COMPLETIONS)]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: Shell,
}

/// Print the man page, or write all of them to a directory
#[derive(Args, Debug)]
#[command(after_help = examples::MAN)]
pub(crate) struct ManArgs {
    /// Where to write a page for each command; without it, the main page is printed
    #[arg(value_hint = ValueHint::DirPath)]
    pub(crate) dir: Option<PathBuf>,
}
