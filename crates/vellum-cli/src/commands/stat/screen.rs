//! A terminal that shows one page after another, each drawn over the one before.
//!
//! Its earlier content is there again when the command ends, for any reason, and while it is
//! stopped. A signal that asks a second time ends the command at once, and leaves the screen as it
//! is: then the terminal takes nothing any more.

use std::io::{IsTerminal, PipeReader, Read, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anstream::adapter::strip_str;
use anyhow::Context;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGWINCH};
use signal_hook::flag;
use signal_hook::low_level::emulate_default_handler;
use vellum_command::outcome::Result;
use vellum_command::signals::{self, Asked};
use vellum_command::stdio;

use crate::table::terminal_size;

/// The signals that ask to end.
pub(super) const TAKEN: [i32; 4] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];

/// Another screen, without a cursor, whose lines end at its edge.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l";
/// The cursor, and the screen from before.
const LEAVE: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";
const TOP_LEFT: &str = "\x1b[H";
const NO_STYLE: &str = "\x1b[0m";
/// Clears the rest of the page before, on a line and below it.
const CLEAR_LINE: &str = "\x1b[K";
const CLEAR_BELOW: &str = "\x1b[J";

/// The screen of the terminal that is standard output.
pub(super) struct Screen {
    asked: Asked,
    is_to_stop: Arc<AtomicBool>,
}

/// Why it is time for another page.
pub(super) enum Wake {
    /// The time has passed.
    Time,
    /// The page before may not be there, or not fit.
    Redraw,
    /// This signal asks to end.
    Ended(i32),
}

/// Whether standard output has a screen to draw on.
pub(super) fn is_there() -> bool {
    let is_able = std::env::var_os("TERM").is_some_and(|name| !name.is_empty() && name != "dumb");
    is_able && stdio::stdout().as_fd().is_terminal()
}

impl Screen {
    /// Takes the screen, and the signals.
    pub(super) fn enter() -> Result<Screen> {
        let asked = Asked::take(&TAKEN).context("cannot take signals")?;
        let is_to_stop = Arc::new(AtomicBool::new(false));
        for signal in signals::not_ignored(&[SIGTSTP]) {
            let stops = flag::register(signal, Arc::clone(&is_to_stop));
            stops.context("cannot take signals")?;
        }
        // After the flag is set.
        asked.wake_by(&[SIGTSTP, SIGWINCH]).context("cannot take signals")?;
        write(ENTER)?;
        Ok(Screen { asked, is_to_stop })
    }

    /// Draws a page over the one before.
    pub(super) fn show(&self, page: &str) -> Result<()> {
        let plain;
        let page = if stdio::shows_styles() {
            page
        } else {
            plain = strip_str(page).to_string();
            &plain
        };
        let lines = match terminal_size() {
            Some((columns, rows)) => fitted(page, columns, rows),
            None => page.lines().map(String::from).collect(),
        };
        let ends = format!("{CLEAR_LINE}\r\n");
        write(&format!("{TOP_LEFT}{}{NO_STYLE}{CLEAR_LINE}{CLEAR_BELOW}", lines.join(&ends)))
    }

    /// Waits for `period`, or a signal.
    pub(super) fn wait(&self, until: Instant) -> Result<Wake> {
        let left = until.saturating_duration_since(Instant::now());
        let mut news = self.asked.news();
        if !is_readable(news, left) {
            return Ok(Wake::Time);
        }
        news.read(&mut [0; 64]).context("cannot read a pipe")?;
        if let Some(signal) = self.asked.signal() {
            return Ok(Wake::Ended(signal));
        }
        if self.is_to_stop.swap(false, Ordering::SeqCst) {
            write(LEAVE)?;
            emulate_default_handler(SIGTSTP).context("cannot stop")?;
            write(ENTER)?;
        }
        Ok(Wake::Redraw)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // The terminal may be gone.
        let _ = write(LEAVE);
    }
}

fn is_readable(pipe: &PipeReader, timeout: Duration) -> bool {
    let timeout = Timespec::try_from(timeout).ok();
    // An interrupted call is one to which a signal has come.
    poll(&mut [PollFd::new(pipe, PollFlags::IN)], timeout.as_ref()).is_ok_and(|count| count > 0)
}

fn write(text: &str) -> Result<()> {
    stdio::stdout().write_all(text.as_bytes()).context("cannot write to standard output")
}

/// As much of a page as has room: lines up to the edge, and the number of those left out.
fn fitted(page: &str, columns: usize, rows: usize) -> Vec<String> {
    let all: Vec<&str> = page.trim_end().lines().collect();
    let shown = if all.len() > rows { rows - 1 } else { all.len() };
    let mut lines: Vec<String> = all[..shown].iter().map(|line| cut(line, columns)).collect();
    if shown < all.len() {
        let more = format!("... {} more lines", all.len() - shown);
        lines.push(format!("{NO_STYLE}{}", cut(&more, columns)));
    }
    lines
}

/// The first characters of a line, with all its styles.
fn cut(line: &str, columns: usize) -> String {
    let (mut text, mut width, mut is_style) = (String::new(), 0, false);
    for character in line.chars() {
        is_style |= character == '\x1b';
        if is_style {
            text.push(character);
            is_style = !character.is_ascii_alphabetic();
        } else if width < columns {
            text.push(character);
            width += 1;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_behind_what_is_seen_of_it() {
        assert_eq!(cut("one", 3), "one");
        assert_eq!(cut("ones", 3), "one");
        assert_eq!(cut("\x1b[1m\x1b[31mones\x1b[0m", 3), "\x1b[1m\x1b[31mone\x1b[0m");
        assert_eq!(cut("µµµµ", 2), "µµ");
    }

    #[test]
    fn a_page_has_no_more_lines_than_the_terminal() {
        assert_eq!(fitted("a\nb\nc\n", 80, 3), ["a", "b", "c"]);
        assert_eq!(fitted("a\nb\nc\n", 80, 2), ["a", "\x1b[0m... 2 more lines"]);
        assert_eq!(fitted("a\nb\n", 8, 1), ["\x1b[0m... 2 mo"]);
    }
}
