//! The command `vellum`: append, read, inspect and measure logs.
//!
//! `args` turns words of the command line into values, `commands` has a file for each command that
//! acts on them, and `table` shows results. The crate `vellum-command` has the parts that other
//! programs share: output, exit codes and signals.

#![forbid(unsafe_code)]

mod args;
mod commands;
mod shipping;
mod table;

use std::process::ExitCode;

use vellum_command::{outcome, stdio};

fn main() -> ExitCode {
    match shipping::run() {
        Some(code) => code,
        None => match args::parse() {
            Ok(command) => {
                outcome::exit_code("vellum", commands::run(command), vellum_doctor::code)
            }
            Err(error) => stdio::answer(&error),
        },
    }
}
