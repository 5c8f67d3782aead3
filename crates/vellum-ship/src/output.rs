//! Text for people: lines, sizes, and how far a command has come.

use std::fmt;

use indicatif::{ProgressBar, ProgressStyle};
use vellum::internal::{escaped, escaped_lines};
use vellum_command::outcome::Result;
use vellum_command::output;
pub(crate) use vellum_command::text::bytes;

/// Says something on standard error. Stores and others are quoted here, so a line of theirs cannot
/// pass for one of ours.
pub(crate) fn say(text: impl fmt::Display) {
    output::say(escaped(text));
}

/// Says what was lost before it was shipped.
pub(crate) fn say_gaps(gaps: &[(u64, u64)]) {
    for (start, end) in gaps {
        say(format_args!("{start} to {end} were lost before they were shipped"));
    }
}

/// Prints lines for people, which no terminal obeys either.
pub(crate) fn print(text: impl fmt::Display) -> Result<()> {
    output::print(&format!("{}\n", escaped_lines(text)))
}

/// How far a command has come, on a terminal. It is drawn only when it is told to move.
pub(crate) fn bar() -> ProgressBar {
    let style = ProgressStyle::with_template(
        "{percent:>3} %  {binary_bytes} of {binary_total_bytes}  {binary_bytes_per_sec}",
    );
    ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// Shows how many bytes of how many are done.
pub(crate) fn show(bar: &ProgressBar, done: u64, all: u64) {
    bar.set_length(all);
    bar.set_position(done);
}
