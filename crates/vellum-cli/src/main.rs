//! The command `vellum`: append, read, inspect and measure logs.
//!
//! `args` turns words of the command line into values, `commands` has a file for each command
//! that acts on them, and `table` shows what comes of it. The crate `vellum-command` has what
//! other programs do in the same way: output, exit codes and signals.

#![forbid(unsafe_code)]

mod args;
mod commands;
mod progress;
mod scratch;
mod shipping;
mod table;

use std::process::ExitCode;

use vellum_command::{outcome, stdio};

fn main() -> ExitCode {
    match shipping::run() {
        Some(code) => code,
        None => match args::parse() {
            Ok(command) => outcome::exit_code("vellum", commands::run(command), code),
            Err(error) => stdio::answer(&error),
        },
    }
}

/// The exit code for errors of measurements.
fn code(error: &anyhow::Error) -> Option<u8> {
    let kind = error.downcast_ref::<vellum_bench::Error>()?.kind();
    (kind == vellum_bench::ErrorKind::InvalidOption).then_some(outcome::USAGE)
}
