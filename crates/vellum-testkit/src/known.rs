//! Faults that are known and not mended yet, each with its reason. The list is to be empty.

use crate::answer::{Answer, Injection, error_name};
use crate::scenario::Case;

/// One fault: where it is met, and why it is there.
struct Known {
    /// Part of the case's name.
    case: &'static str,
    /// Start of the call, as it is shown.
    call: &'static str,
    /// The error; nothing for any, `+` for any that lasts.
    error: &'static str,
}

const fn known(case: &'static str, call: &'static str, error: &'static str) -> Known {
    Known { case, call, error }
}

const KNOWN: &[Known] = &[
    // A signal becomes an error of the call.
    known("", "", "EINTR"),
    // Who has reserved, and cannot open or fill, holds others up for as long as it lives.
    known("", "", "+"),
    known("abandon/", "", ""),
    // An error of one process before the sync poisons the log.
    known("commit", "open", ""),
    known("commit", "fstat", ""),
    known("commitbehinddead/", "newfstatat", ""),
    known("commitbehinddead/", "getdents64", ""),
    known("commitbehinddead/", "pread64", ""),
    // Who may not read which boot it is takes it for another, and recovers as after a power cut: meant so.
    known("repair", "openat", "EACCES"),
    // A stage that cannot be looked at counts as none.
    known("", "statx", ""),
    // A truncation that failed takes effect when its process has gone on.
    known("truncate/", "", ""),
];

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
