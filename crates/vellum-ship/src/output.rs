//! Text for people: lines, sizes, and how far a command has come.

use std::fmt;
use std::io::IsTerminal;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use vellum::internal::{escaped, escaped_lines};
use vellum_command::outcome::Result;
use vellum_command::{output, stdio};

/// How often a line of progress changes.
const RHYTHM: Duration = Duration::from_millis(200);

/// Says something on standard error. Stores and others are quoted here, so a line of theirs cannot
/// pass for one of ours.
pub(crate) fn say(text: impl fmt::Display) {
    output::say(escaped(text));
}

/// Prints lines for people, which no terminal obeys either.
pub(crate) fn print(text: impl fmt::Display) -> Result<()> {
    output::print(&format!("{}\n", escaped_lines(text)))
}

/// Bytes for people.
pub(crate) fn bytes(count: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB"];
    let mut size = count as f64;
    let mut unit = "bytes";
    for next in units {
        if size < 1024.0 {
            break;
        }
        (size, unit) = (size / 1024.0, next);
    }
    if unit == "bytes" { format!("{count} bytes") } else { format!("{size:.1} {unit}") }
}

/// How far a command has come, on a terminal.
pub(crate) struct Bar {
    begun: Instant,
    shown: Option<Instant>,
    is_terminal: bool,
}

impl Bar {
    pub(crate) fn new() -> Bar {
        let is_terminal = stdio::stderr().as_fd().is_terminal();
        Bar { begun: Instant::now(), shown: None, is_terminal }
    }

    /// Whether it is time to show something.
    pub(crate) fn is_due(&self) -> bool {
        self.is_terminal && self.shown.is_none_or(|shown| shown.elapsed() >= RHYTHM)
    }

    /// Shows how many bytes of how many are done.
    pub(crate) fn show(&mut self, done: u64, all: u64) {
        if !self.is_due() {
            return;
        }
        self.shown = Some(Instant::now());
        let share = done.saturating_mul(100) / all.max(1);
        let rate = done as f64 / self.begun.elapsed().as_secs_f64().max(0.001);
        let rate = bytes(rate as u64);
        let (done, all) = (bytes(done), bytes(all));
        let _ = stdio::tell(&format!("\r\x1b[K{share:>3} %  {done} of {all}  {rate}/s"));
    }

    /// Takes the line away.
    pub(crate) fn finish(&mut self) {
        if self.shown.take().is_some() {
            let _ = stdio::tell("\r\x1b[K");
        }
    }
}
