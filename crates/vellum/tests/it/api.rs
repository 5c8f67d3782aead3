//! Everything the interface promises, in both layouts.

mod advice;
mod advice_text;
mod collisions;
mod envelopes;
mod looking;
mod metrics;
mod model;
mod open_end;
mod polling;
mod random_access;
mod reading;
mod reopening;
mod reserving;
mod retaining;
mod round_trip;
mod sharing;
mod small;
mod text;
mod trimming;
mod writing;

use crate::support::child::Role;

pub(crate) const ROLES: &[Role] = &[
    ("answerer", polling::answerer),
    ("create as nobody", advice::create_as_nobody),
    ("fork and append", envelopes::fork_and_append),
    ("echo", reading::echo),
    ("append lines", text::append_lines),
    ("append records", metrics::append_records),
    ("hold a log", sharing::hold_a_log),
];
