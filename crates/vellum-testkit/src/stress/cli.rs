//! What `vellum-stress` does with its command line, and the exit code that says how it went.

use std::fmt;
use std::process::ExitCode;

use anyhow::{Result, anyhow};
use vellum::{Create, ErrorKind, Log, Options, Tuning};
use vellum_command::outcome::{Outcome, exit_code};
use vellum_command::output;

use super::args::Args;
use super::open::open;
use super::survey::Survey;
use super::{check, processes, retention, writer};

/// What `vellum-stress` does.
pub fn main() -> ExitCode {
    let is_well = run(&Args::read());
    let outcome = is_well.map(|well| if well { Outcome::Good } else { Outcome::Failed });
    exit_code(PROGRAM, outcome, |_| None)
}

/// Returns whether all is well; faults have been printed.
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
    let mut options = Options::default().create(Create::Never);
    if let Some(path) = args.commit_path() {
        options = options.tuning(Tuning::new().commit_path(path));
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

/// Says something on standard error.
pub(super) fn say(text: impl fmt::Display) {
    output::say_as(PROGRAM, text);
}

/// In whose name a line on standard error is said.
pub(super) const PROGRAM: &str = "vellum-stress";
