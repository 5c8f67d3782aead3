//! How a command went, and the exit code that says so. All programs have the same codes.

use std::process::ExitCode;
use std::{fmt, io};

use signal_hook::low_level::{self, emulate_default_handler};
use vellum::ErrorKind;

use crate::{output, signals};

/// The failure, for people.
pub type Result<T, E = anyhow::Error> = std::result::Result<T, E>;

/// A command that came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Everything as asked.
    Good,
    /// It looked at everything it could, and something is damaged or missing.
    Damaged,
    /// It printed what it could see, and more may be there that it could not.
    Incomplete,
    /// It said on standard output what is wrong.
    Failed,
    /// The result is only just good enough.
    Marginal,
    /// The result is not good enough.
    NotGoodEnough,
    /// The disk could not be judged.
    CannotTell,
    /// It ended in good order because this signal asked for it.
    EndedBy(i32),
}

impl Outcome {
    /// That of a command that looked at many logs, of which this error kept it from one.
    pub fn of(error: &anyhow::Error) -> Outcome {
        if code(error) == DAMAGED { Outcome::Damaged } else { Outcome::Failed }
    }

    /// That of this and of another log: the worse one.
    pub fn and(self, other: Outcome) -> Outcome {
        let by_weight = [Outcome::Damaged, Outcome::Failed, Outcome::Incomplete];
        let worst = by_weight.into_iter().find(|outcome| [self, other].contains(outcome));
        worst.unwrap_or(self)
    }
}

/// A value on the command line that does not fit, or does not go with the log.
#[derive(Debug)]
pub struct BadValue(pub String);

impl fmt::Display for BadValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadValue {}

/// It failed.
pub const FAILED: u8 = 1;
/// The command line is wrong, or contradicts the log.
pub const USAGE: u8 = 2;
/// Something is damaged.
pub const DAMAGED: u8 = 3;
/// More may be there.
pub const INCOMPLETE: u8 = 4;
/// The result is only just good enough.
pub const MARGINAL: u8 = 5;
/// The result is not good enough.
pub const NOT_GOOD_ENOUGH: u8 = 6;
/// The disk could not be judged: the machine had no time for it.
pub const CANNOT_TELL: u8 = 7;

/// The exit code of `program` for `result`. An error is told on standard error. `own_code` gives
/// the code for errors that only this program has.
pub fn exit_code(
    program: &str,
    result: Result<Outcome>,
    own_code: impl FnOnce(&anyhow::Error) -> Option<u8>,
) -> ExitCode {
    match result {
        Ok(Outcome::Good) => ExitCode::SUCCESS,
        Ok(Outcome::Damaged) => ExitCode::from(DAMAGED),
        Ok(Outcome::Incomplete) => ExitCode::from(INCOMPLETE),
        Ok(Outcome::Marginal) => ExitCode::from(MARGINAL),
        Ok(Outcome::NotGoodEnough) => ExitCode::from(NOT_GOOD_ENOUGH),
        Ok(Outcome::CannotTell) => ExitCode::from(CANNOT_TELL),
        Ok(Outcome::Failed) => ExitCode::from(FAILED),
        Ok(Outcome::EndedBy(signal)) => end_by(signal),
        // The reader has had enough: nothing went wrong.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::say_as(program, as_typed(&error));
            ExitCode::from(own_code(&error).unwrap_or_else(|| code(&error)))
        }
    }
}

/// Ends this process as `signal` does, so that its parent sees it.
pub fn end_by(signal: i32) -> ! {
    // The first process of a container cannot: the next step then is a crash.
    if !signals::is_first_process() {
        let _ = emulate_default_handler(signal);
    }
    low_level::exit(signals::code(signal))
}

/// The text of an error with options as the user has typed them.
pub fn as_typed(error: &anyhow::Error) -> String {
    let mut texts = Vec::new();
    for cause in error.chain() {
        if let Some(error) = cause.downcast_ref::<vellum::Error>() {
            // It has the words of its causes.
            texts.push(error.text_with(typed));
            break;
        }
        texts.push(cause.to_string());
    }
    texts.join(": ")
}

/// Options of the library that no command has.
const NOT_TYPED: [&str; 12] = [
    "advice_from",
    "application_tag",
    "checkpoint_after_bytes",
    "create",
    "file_link",
    "mapped_bytes_max",
    "mode",
    "on_stage_full",
    "prefault_bytes",
    "read_only",
    "staged_segments_max",
    "tuning",
];

/// The name of an option of the library on a command line; as it is where no command has it.
pub fn typed(option: &str) -> String {
    match option {
        "segment_capacity_bytes" => "--segment-bytes".into(),
        _ if NOT_TYPED.contains(&option) => option.into(),
        _ => format!("--{}", option.replace('_', "-")),
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io_errors = error.chain().filter_map(|cause| cause.downcast_ref());
    io_errors.map(io::Error::kind).any(|kind| kind == io::ErrorKind::BrokenPipe)
}

fn code(error: &anyhow::Error) -> u8 {
    if error.is::<BadValue>() {
        return USAGE;
    }
    let of_log = error.chain().find_map(|cause| cause.downcast_ref::<vellum::Error>());
    match of_log.map(vellum::Error::kind) {
        Some(ErrorKind::Corrupt) => DAMAGED,
        Some(ErrorKind::InvalidOption) => USAGE,
        _ => FAILED,
    }
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn a_refusal_of_the_system_is_told_once() {
        let refused = vellum::Options::events().open("/dev/null/a.log").unwrap_err();
        let text = refused.to_string();
        let error = Err::<(), _>(refused).context("cannot begin").unwrap_err();
        assert_eq!(as_typed(&error), format!("cannot begin: {text}"));
    }
}
