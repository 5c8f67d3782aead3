//! How a command went, and the exit code that says so; the same codes as `vellum` has.

use std::io;
use std::process::ExitCode;

use vellum_ship::read::ReadError;

use crate::output;

/// What went wrong, for people.
pub(crate) type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// A command that came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Everything as asked.
    Good,
    /// It looked at everything it could, and something is damaged or missing.
    Damaged,
}

/// A value on the command line that does not fit.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct BadValue(pub(crate) String);

const FAILED: u8 = 1;
const USAGE: u8 = 2;
const DAMAGED: u8 = 3;

/// The exit code for `result`; an error is told on standard error.
pub(crate) fn exit_code(result: Result<Outcome>) -> ExitCode {
    match result {
        Ok(Outcome::Good) => ExitCode::SUCCESS,
        Ok(Outcome::Damaged) => ExitCode::from(DAMAGED),
        // Whoever reads has had enough: nothing went wrong.
        Err(error) if is_broken_pipe(error.as_ref()) => ExitCode::SUCCESS,
        Err(error) => {
            output::say(&error);
            ExitCode::from(code(error.as_ref()))
        }
    }
}

fn is_broken_pipe(error: &(dyn std::error::Error + 'static)) -> bool {
    let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
    kind == Some(io::ErrorKind::BrokenPipe)
}

fn code(error: &(dyn std::error::Error + 'static)) -> u8 {
    match error.downcast_ref::<ReadError>() {
        Some(error) if error.is_damage() => DAMAGED,
        _ if error.is::<BadValue>() => USAGE,
        _ => FAILED,
    }
}
