//! The command `vellum-ship`, which `vellum` calls for URLs.

#![forbid(unsafe_code)]

mod commands;
mod outcome;
mod output;
mod printer;

use std::process::ExitCode;

fn main() -> ExitCode {
    outcome::exit_code(commands::run())
}
