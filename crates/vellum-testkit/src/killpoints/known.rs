//! Faults that are known and not mended yet, each with its reason. The list is to be empty.

use super::answer::{Answer, Injection, error_name};
use super::scenario::Case;

/// One fault: where it is met, and why it is there.
struct Known {
    /// Part of the case's name.
    case: &'static str,
    /// Start of the call, as it is shown.
    call: &'static str,
    /// The error; nothing for any, `+` for any that lasts.
    error: &'static str,
}

#[expect(dead_code, reason = "the list is empty")]
const fn known(case: &'static str, call: &'static str, error: &'static str) -> Known {
    Known { case, call, error }
}

const KNOWN: &[Known] = &[];

/// Whether what goes wrong here is known.
pub(crate) fn is_known(case: &Case, call: &str, injection: Injection) -> bool {
    let case = case.to_string();
    let is_it = |known: &Known| match (known.error, injection.answer) {
        ("", _) => true,
        ("+", _) => injection.is_lasting,
        (error, Answer::Error(errno)) => error == error_name(errno),
        (error, Answer::Short(_)) => error == "short",
    };
    KNOWN
        .iter()
        .any(|known| case.contains(known.case) && call.starts_with(known.call) && is_it(known))
}
