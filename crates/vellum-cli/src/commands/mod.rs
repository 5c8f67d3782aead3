//! What the command does: one file for each.

mod append;
mod bench;
mod cat;
mod completions;
mod demo;
mod man;
mod stat;
mod trim;
mod verify;

use std::path::Path;

use vellum::{Log, Options, Stat};

use crate::lowargs::{BenchSuite, Command, InternalCommand};
use crate::outcome::{Outcome, Result};
use crate::{output, scratch};

/// Does what the command line asks for.
pub(crate) fn run(command: Command) -> Result<Outcome> {
    match command {
        Command::Append(args) => append::run(&args),
        Command::Cat(args) => cat::run(&args),
        Command::Stat(args) => stat::run(&args),
        Command::Verify(args) => verify::run(&args),
        Command::Trim(args) => trim::run(&args),
        Command::Bench(args) => match args.suite {
            BenchSuite::Append(args) => bench::append::run(args),
            BenchSuite::Commit(args) => bench::commit::run(args),
            BenchSuite::Sync(args) => bench::sync::run(args),
        },
        Command::Demo(args) => demo::run(&args),
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => man::run(&args),
        Command::Internal(InternalCommand::DemoWriter(args)) => demo::writer(&args),
        Command::Internal(InternalCommand::Keeper(args)) => scratch::keep(&args),
    }
}

/// Opens a log that exists, to look at it.
fn open_to_read(path: &Path) -> Result<Log> {
    Ok(Options::new().read_only(true).open(path)?)
}

/// A reader can't pad what a dead writer left; somebody who may write has to come by.
fn tell_of_the_dead(stat: &Stat) {
    if let Some(holder) = stat.held_back_by().filter(|holder| !holder.alive) {
        output::say(format_args!(
            "records from position {} on wait behind one of process {}, which died; \
             the next `vellum append`, or `vellum cat --follow`, sets them free",
            stat.published, holder.pid
        ));
    }
}
