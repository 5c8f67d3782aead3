//! What `vellum-stress` does with its command line, and the exit code that says how it went.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::{Result, anyhow};
use vellum::{ErrorKind, Log, Options};

use super::args::Args;
use super::open::open;
use super::survey::Survey;
use super::{check, processes, retention, writer};

const FAILED: u8 = 1;
const USAGE: u8 = 2;

/// What `vellum-stress` does.
pub fn main() -> ExitCode {
    match run(&Args::read()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(FAILED),
        // Whoever reads has had enough: nothing went wrong.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            say(as_typed(format!("{error:#}")));
            let contradicts_the_log = error.is::<vellum::Error>();
            ExitCode::from(if contradicts_the_log { USAGE } else { FAILED })
        }
    }
}

/// Returns whether all is well; what is not has been printed.
fn run(args: &Args) -> Result<bool> {
    match args.process {
        Some(process) => one_process(args, process)?,
        None if args.check => return check::run(&args.log, args.torn),
        None => workload(args)?,
    }
    Ok(true)
}

fn workload(args: &Args) -> Result<()> {
    retention::check(args)?;
    let log = open(args).map_err(|error| match error.kind() {
        ErrorKind::InvalidOption => error.into(),
        _ => failure(error),
    })?;
    let next = next_numbers(&log, args)?;
    if args.processes == 1 {
        return writer::run(&log, args, 0, &next);
    }
    // Only the writers are to be attached.
    drop(log);
    processes::run(args, &next)
}

/// Runs one of several processes.
fn one_process(args: &Args, process: u32) -> Result<()> {
    processes::wait_for_start()?;
    let mut options = Options::new().create(false);
    if let Some(path) = args.commit_path() {
        options = options.commit_path(path);
    }
    let log = options.open(&args.log).map_err(failure)?;
    writer::run(&log, args, process, &args.next)
}

/// The next number of each writer: in a new log, its first.
fn next_numbers(log: &Log, args: &Args) -> Result<Vec<u64>> {
    let survey = Survey::of(log, false);
    let next = match survey.faults.first() {
        Some(fault) => Err(fault.clone()),
        None => survey.next_numbers(args.writers(), args.seed),
    };
    next.map_err(|reason| anyhow!("cannot go on with {}: {reason}", args.log.display()))
}

/// The error as words alone: whatever it is, the exit code is 1.
pub(super) fn failure(error: vellum::Error) -> anyhow::Error {
    anyhow!("{error}")
}

/// Says something on standard error. If that is closed, nobody wants to hear it.
pub(super) fn say(text: impl fmt::Display) {
    let _ = writeln!(io::stderr(), "{PREFIX}{text}");
}

/// How a line on standard error begins.
pub(super) const PREFIX: &str = "vellum-stress: ";

/// What options are called in errors of the library, and on the command line.
const NAMES: [(&str, &str); 7] = [
    ("created with layout", "created with --layout"),
    ("with the layout text", "with --layout text"),
    ("created with preallocation", "created with --preallocate"),
    ("created with fill", "created with --fill"),
    ("segment capacity", "--segment-bytes"),
    ("rotate_bytes", "--rotate-bytes"),
    ("retain_files", "--retain-files"),
];

/// The text of an error with options as the user has typed them.
fn as_typed(text: String) -> String {
    NAMES.iter().fold(text, |text, (name, option)| text.replace(name, option))
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io_errors = error.chain().filter_map(|cause| cause.downcast_ref());
    io_errors.map(io::Error::kind).any(|kind| kind == io::ErrorKind::BrokenPipe)
}
