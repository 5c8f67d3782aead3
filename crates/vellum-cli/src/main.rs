//! The command `vellum`: append, read, inspect and measure logs.
//!
//! `lowargs` turns words of the command line into values, `commands` has a file for each command
//! that acts on them, `output` and `table` bring results out, `outcome` says how it went, `stdio`
//! and `signals` are what the process gets from outside. Data goes to standard output, talk to
//! standard error.

#![forbid(unsafe_code)]

mod commands;
mod lowargs;
mod outcome;
mod output;
mod progress;
mod scratch;
mod shipping;
mod signals;
mod stdio;
mod table;

use std::process::ExitCode;

fn main() -> ExitCode {
    match shipping::run() {
        Some(code) => code,
        None => match lowargs::parse() {
            Ok(command) => outcome::exit_code(commands::run(command)),
            Err(error) => stdio::answer(&error),
        },
    }
}
