//! The command `vellum-ship`, which `vellum` calls for URLs.

#![forbid(unsafe_code)]

mod commands;
mod output;

use std::process::ExitCode;

use vellum_command::outcome::{self, DAMAGED, USAGE};
use vellum_ship::read::ReadError;
use vellum_ship::store::{StoreError, StoreErrorKind};

fn main() -> ExitCode {
    outcome::exit_code("vellum", commands::run(), code)
}

/// The exit code for errors of reading and of stores.
fn code(error: &anyhow::Error) -> Option<u8> {
    if error.downcast_ref().is_some_and(ReadError::is_damage) {
        return Some(DAMAGED);
    }
    let of_store = error.chain().find_map(|cause| cause.downcast_ref::<StoreError>());
    of_store.is_some_and(|error| error.kind() == StoreErrorKind::WrongUrl).then_some(USAGE)
}
