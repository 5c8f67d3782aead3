//! `vellum stress`: the workload of every crash test, and the check of what a crash left.
//!
//! `payload` makes and knows the records, `writer` appends them from the threads of a process,
//! `processes` from several, `reports` says what is durable and what goes, `retention` knows what
//! goes; `survey` reads a log, `breaks` knows where a power cut tore it, `files` looks at its files,
//! `check` judges it.

mod breaks;
mod check;
mod files;
mod numbers;
mod payload;
mod processes;
mod reports;
mod retention;
mod survey;
mod writer;

use anyhow::anyhow;
use vellum::{ErrorKind, Log, Options};

use super::open_to_commit;
use crate::lowargs::{StressArgs, StressProcessArgs};
use crate::outcome::{Outcome, Result};
use survey::Survey;

pub(super) fn run(args: &StressArgs) -> Result<Outcome> {
    if args.check {
        return check::run(&args.log, args.torn);
    }
    retention::check(args)?;
    let log = open(args)?;
    let next = next_numbers(&log, args)?;
    if args.processes == 1 {
        writer::run(&log, args, 0, &next)?;
    } else {
        // Only the writers are to be attached.
        drop(log);
        processes::run(args, &next)?;
    }
    Ok(Outcome::Good)
}

/// Runs one of several processes.
pub(super) fn process(args: &StressProcessArgs) -> Result<Outcome> {
    processes::wait_for_start()?;
    let log = Options::new().create(false).open(&args.stress.log).map_err(failure)?;
    writer::run(&log, &args.stress, args.process, &args.next)?;
    Ok(Outcome::Good)
}

fn open(args: &StressArgs) -> Result<Log> {
    match open_to_commit(&args.log, &args.shape, &args.policy()) {
        Err(error) if error.kind() != ErrorKind::InvalidOption => Err(failure(error)),
        answer => Ok(answer?),
    }
}

/// What each writer goes on with: in a new log, with its first.
fn next_numbers(log: &Log, args: &StressArgs) -> Result<Vec<u64>> {
    let survey = Survey::of(log, false);
    let next = match survey.faults.first() {
        Some(fault) => Err(fault.clone()),
        None => survey.next_numbers(args.writers(), args.seed),
    };
    next.map_err(|reason| anyhow!("cannot go on with {}: {reason}", args.log.display()))
}

/// The error as words alone: whatever it is, the exit code is 1.
fn failure(error: vellum::Error) -> anyhow::Error {
    anyhow!("{error}")
}
