//! The program `vellum-doctor`: the command `vellum doctor`, alone in one file.

#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use vellum_command::help::{self, Shell};
use vellum_command::outcome::{self, Outcome, Result};
use vellum_command::{signals, stdio};
use vellum_doctor::DoctorArgs;
use vellum_doctor::scratch::{self, INTERNAL};

// Without a comment for help: that is the text of the command.
#[derive(Debug, Parser)]
#[command(name = "vellum-doctor", version, max_term_width = 100)]
struct CommandLine {
    #[command(flatten)]
    doctor: DoctorArgs,
}

/// Words that come first and are no directory: `./man` is one.
const WORDS: [&str; 2] = ["man", "completions"];

/// What packages are made with.
#[derive(Debug, Parser)]
#[command(name = "vellum-doctor")]
struct Pages {
    #[command(subcommand)]
    command: PagesCommand,
}

#[derive(Debug, Subcommand)]
enum PagesCommand {
    /// Print the man page, or write one for each command to a directory
    Man { dir: Option<PathBuf> },
    /// Print a completion script for a shell
    Completions { shell: Shell },
}

/// The command line of a process that this program starts for itself.
#[derive(Debug, Parser)]
struct Internal {
    #[command(subcommand)]
    command: InternalCommand,
}

#[derive(Debug, Subcommand)]
enum InternalCommand {
    Keeper,
}

fn main() -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|word| word == INTERNAL) {
        let internal = Internal::parse_from(std::env::args_os().skip(1));
        let InternalCommand::Keeper = internal.command;
        return ended(scratch::keep());
    }
    if std::env::args_os().nth(1).is_some_and(|word| WORDS.iter().any(|known| word == *known)) {
        return match Pages::try_parse() {
            Ok(pages) => ended(written(pages.command)),
            Err(error) => stdio::answer(&error),
        };
    }
    match CommandLine::try_parse() {
        Ok(line) => ended(run(&line.doctor)),
        Err(error) => stdio::answer(&error),
    }
}

fn written(pages: PagesCommand) -> Result<Outcome> {
    match pages {
        PagesCommand::Man { dir: Some(dir) } => help::write_man(CommandLine::command(), &dir),
        PagesCommand::Man { dir: None } => help::print_man(CommandLine::command()),
        PagesCommand::Completions { shell } => {
            help::print_completions(CommandLine::command(), shell)
        }
    }
}

fn run(args: &DoctorArgs) -> Result<Outcome> {
    signals::end_first_process(vellum_doctor::taken(args))?;
    vellum_doctor::run(args)
}

fn ended(result: Result<Outcome>) -> ExitCode {
    outcome::exit_code("vellum-doctor", result, vellum_doctor::code)
}
