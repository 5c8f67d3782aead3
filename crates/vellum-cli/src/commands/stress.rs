//! `vellum stress`: the workload of every crash test, and the check of what a crash left.
//!
//! `payload` makes and knows the records, `writer` appends them from the threads of a process,
//! `processes` from several, `reports` says what is durable and what goes, `survey` reads a log,
//! `check` judges it.

mod check;
mod numbers;
mod payload;
mod processes;
mod reports;
mod survey;
mod writer;

use anyhow::{anyhow, ensure};
use vellum::{Log, Lsn, Options};

use super::for_commits;
use crate::lowargs::{StressArgs, StressProcessArgs};
use crate::outcome::{Outcome, Result};

pub(super) fn run(args: &StressArgs) -> Result<Outcome> {
    if args.check {
        return check::run(&args.log);
    }
    let log = open(args)?;
    if args.processes == 1 {
        writer::run(&log, args, 0)?;
    } else {
        // Only the writers are to be attached.
        drop(log);
        processes::run(args)?;
    }
    Ok(Outcome::Good)
}

/// Runs one of several processes.
pub(super) fn process(args: &StressProcessArgs) -> Result<Outcome> {
    processes::wait_for_start()?;
    let log = Options::new().create(false).open(&args.stress.log).map_err(failure)?;
    writer::run(&log, &args.stress, args.process)?;
    Ok(Outcome::Good)
}

/// Opens the log, which must not hold anything: numbers begin at 0.
fn open(args: &StressArgs) -> Result<Log> {
    let log = match for_commits(&args.shape).open(&args.log) {
        Err(error) if error.kind() != vellum::ErrorKind::InvalidOption => {
            return Err(failure(error));
        }
        answer => answer?,
    };
    let is_empty = log.reader(Lsn::ZERO).and_then(|mut reader| Ok(reader.next()?.is_none()));
    ensure!(
        is_empty.map_err(failure)?,
        "{} holds records already; name a new log, or look at this one with --check",
        args.log.display()
    );
    Ok(log)
}

/// The error as words alone: whatever it is, the exit code is 1.
fn failure(error: vellum::Error) -> anyhow::Error {
    anyhow!("{error}")
}
