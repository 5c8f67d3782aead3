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
    let is_damage = error.downcast_ref().is_some_and(ReadError::is_damage);
    let of_store = error.chain().find_map(|cause| cause.downcast_ref::<StoreError>());
    let is_wrong_url = of_store.is_some_and(|error| error.kind() == StoreErrorKind::WrongUrl);
    match (is_damage, is_wrong_url) {
        (true, _) => Some(DAMAGED),
        (_, true) => Some(USAGE),
        _ => None,
    }
}
