//! The command `vellum-ship`, which `vellum` calls for URLs.

#![forbid(unsafe_code)]

mod commands;
mod output;

use std::process::ExitCode;

use vellum_command::outcome::{self, DAMAGED};
use vellum_ship::read::ReadError;

fn main() -> ExitCode {
    outcome::exit_code("vellum", commands::run(), code)
}

/// The exit code for errors of reading.
fn code(error: &anyhow::Error) -> Option<u8> {
    error.downcast_ref().is_some_and(ReadError::is_damage).then_some(DAMAGED)
}
