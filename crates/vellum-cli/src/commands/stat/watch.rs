//! The state of logs again and again.

use std::thread;
use std::time::{Duration, Instant};

use vellum_command::outcome::{Outcome, Result};
use vellum_command::output;
use vellum_command::stdio::is_output_closed;

use super::Show;
use super::logs::{Found, Logs};
use super::screen::{self, Screen, Wake};
use crate::args::StatArgs;

/// How often to look.
const PERIOD: Duration = Duration::from_secs(1);

/// The signals that are taken while a screen is to be left.
pub(crate) fn taken(args: &StatArgs) -> &'static [i32] {
    if has_screen(args) { &screen::TAKEN } else { &[] }
}

fn has_screen(args: &StatArgs) -> bool {
    args.watch && !args.json && screen::is_there()
}

/// Shows the logs until no reader is left.
pub(super) fn run(logs: &mut Logs, show: &Show, first: Vec<Found>) -> Result<Outcome> {
    let first = show.found(first)?;
    if has_screen(show.args) {
        return on_screen(logs, show, first);
    }
    show.print(&first)?;
    while !is_output_closed() {
        thread::sleep(PERIOD);
        let found = show.found(logs.look())?;
        if !show.args.json {
            output::print("\n")?;
        }
        show.print(&found)?;
    }
    Ok(Outcome::Good)
}

fn on_screen(logs: &mut Logs, show: &Show, first: Vec<Found>) -> Result<Outcome> {
    let (mut found, mut next) = (first, Instant::now() + PERIOD);
    let screen = Screen::enter()?;
    while !is_output_closed() {
        screen.show(&show.text(&found))?;
        match screen.wait(next)? {
            Wake::Time => {
                found = show.found(logs.look())?;
                next = Instant::now() + PERIOD;
            }
            Wake::Redraw => {}
            Wake::Ended(signal) => return Ok(Outcome::EndedBy(signal)),
        }
    }
    Ok(Outcome::Good)
}
