//! The state of logs again and again.

use std::io::IsTerminal;
use std::os::fd::AsFd;
use std::thread;
use std::time::Duration;

use vellum_command::outcome::{Outcome, Result};
use vellum_command::output;
use vellum_command::stdio::{self, is_output_closed};

use super::Show;
use super::logs::{Found, Logs};

/// How often to look.
const PERIOD: Duration = Duration::from_secs(1);
/// Has a terminal forget what it shows.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// Shows the logs until nobody looks any more.
pub(super) fn run(logs: &mut Logs, show: &Show, first: Vec<Found>) -> Result<Outcome> {
    let is_terminal = stdio::stdout().as_fd().is_terminal();
    show.print(&show.found(first)?)?;
    while !is_output_closed() {
        thread::sleep(PERIOD);
        let found = show.found(logs.look())?;
        match (show.args.json, is_terminal) {
            (true, _) => {}
            (false, true) => output::print(CLEAR)?,
            (false, false) => output::print("\n")?,
        }
        show.print(&found)?;
    }
    Ok(Outcome::Good)
}
