//! How a command went, and the exit code that says so.

use std::io;
use std::process::ExitCode;

use crate::output;

/// What went wrong, for people.
pub(crate) type Result<T, E = anyhow::Error> = std::result::Result<T, E>;

/// A command that came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Everything as asked.
    Good,
    /// It looked at everything it could, and something is damaged.
    Damaged,
    /// It said on standard output what is wrong.
    Failed,
}

const FAILED: u8 = 1;
const USAGE: u8 = 2;
const DAMAGED: u8 = 3;

/// The exit code for `result`; an error is told on standard error.
pub(crate) fn exit_code(result: Result<Outcome>) -> ExitCode {
    match result {
        Ok(Outcome::Good) => ExitCode::SUCCESS,
        Ok(Outcome::Damaged) => ExitCode::from(DAMAGED),
        Ok(Outcome::Failed) => ExitCode::from(FAILED),
        // Whoever reads has had enough: nothing went wrong.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::say(format_args!("{error:#}"));
            ExitCode::from(code(&error))
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io_errors = error.chain().filter_map(|cause| cause.downcast_ref());
    io_errors.map(io::Error::kind).any(|kind| kind == io::ErrorKind::BrokenPipe)
}

fn code(error: &anyhow::Error) -> u8 {
    if let Some(error) = error.chain().find_map(|cause| cause.downcast_ref::<vellum::Error>()) {
        return match error.kind() {
            vellum::ErrorKind::Corrupt => DAMAGED,
            vellum::ErrorKind::InvalidOption => USAGE,
            _ => FAILED,
        };
    }
    match error.downcast_ref::<vellum_bench::Error>().map(vellum_bench::Error::kind) {
        Some(vellum_bench::ErrorKind::InvalidOption) => USAGE,
        _ => FAILED,
    }
}
