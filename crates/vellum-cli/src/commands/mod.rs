//! The commands: one file for each.

mod advise;
mod append;
mod ask;
mod bench;
mod cat;
mod checkpoint;
mod completions;
mod cursor;
mod demo;
mod man;
mod open;
mod prepare;
mod repair;
mod rotate;
mod stat;
mod tail;
mod times;
mod trim;
mod truncate;
mod verify;

use anyhow::Context;
use vellum_command::outcome::{Outcome, Result};
use vellum_command::{signals, stdio};

use crate::args::{BenchSuite, Command, InternalCommand};
use vellum_doctor::scratch;

/// Does what the command line asks for.
pub(crate) fn run(command: Command) -> Result<Outcome> {
    match &command {
        Command::Stat(args) => stdio::choose_styles(args.color.color),
        Command::Cursor(args) => stdio::choose_styles(args.color.color),
        _ => {}
    }
    let taken = match &command {
        Command::Append(_) => &append::TAKEN[..],
        Command::Stat(args) => stat::taken(args),
        Command::Bench(args) => bench::taken(&args.suite),
        Command::Doctor(args) => vellum_doctor::taken(args),
        _ => &[],
    };
    signals::end_first_process(taken).context("cannot take signals")?;
    match command {
        Command::Append(args) => append::run(&args),
        Command::Cat(args) => cat::run(&args),
        Command::Tail(args) => tail::run(&args),
        Command::Stat(args) => stat::run(&args),
        Command::Verify(args) => verify::run(&args),
        Command::Prepare(args) => prepare::run(&args),
        Command::Checkpoint(args) => checkpoint::run(&args),
        Command::Cursor(args) => cursor::run(&args),
        Command::Rotate(args) => rotate::run(&args),
        Command::Trim(args) => trim::run(&args),
        Command::Truncate(args) => truncate::run(&args),
        Command::Repair(args) => repair::run(&args),
        Command::Bench(args) => match args.suite {
            BenchSuite::All(args) => bench::all::run(&args),
            BenchSuite::Suite(args) => bench::run(args),
            BenchSuite::Compare(args) => bench::compare::run(&args),
            BenchSuite::Report(args) => bench::report::run(&args),
            BenchSuite::Publish(args) => bench::publish::run(&args),
        },
        Command::Advise(args) => advise::run(&args),
        Command::Doctor(args) => vellum_doctor::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => man::run(&args),
        Command::Internal(InternalCommand::DemoWriter(args)) => demo::writer(&args),
        Command::Internal(InternalCommand::Keeper) => scratch::keep(),
    }
}
