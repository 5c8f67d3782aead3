//! The command `vellum-ship`, which `vellum` calls for URLs.

#![forbid(unsafe_code)]

mod commands;
mod outcome;
mod output;
mod printer;
#[path = "../../vellum-cli/src/signals.rs"]
mod signals;
#[path = "../../vellum-cli/src/stdio.rs"]
mod stdio;

use std::process::ExitCode;

fn main() -> ExitCode {
    outcome::exit_code(commands::run())
}
