//! Following whatever log is at a path: one that is not there yet, and the next that is made there.

use std::cell::Cell;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread;
use std::time::Duration;

use vellum::internal::log_directory;
use vellum::{Log, Lsn};
use vellum_command::outcome::{Outcome, Result, as_typed};
use vellum_command::output;
use vellum_command::stdio::is_output_closed;

use super::{Start, start};
use crate::args::{CatArgs, Lines};
use crate::commands::cat;
use crate::commands::open::{is_missing, open_to_read};

/// How often to look whether there is a log.
const LOOK_FOR_LOG: Duration = Duration::from_millis(100);

/// Numbers that tell a log from another at the same path. No number is given out again while the
/// log is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    device: u64,
    directory: u64,
    control: u64,
}

/// Prints the newest `lines` records, and follows whatever log is there.
pub(super) fn run(path: &Path, args: &CatArgs, lines: Lines) -> Result<Outcome> {
    let mut outcome = Outcome::Good;
    let mut is_first = identity(path).is_ok();
    while let Some((log, mine)) = wait_for(path)? {
        // Of one that was made meanwhile nothing has been shown.
        let all = Start { from: Lsn::ZERO, is_short: false };
        let start = if is_first { start(&log, args, lines)? } else { all };
        is_first = false;
        let has_been = Cell::new(false);
        let is_another = || matches!(identity(path), Ok(now) if now != mine);
        // A writer may have used the old one until a moment ago.
        let is_elsewhere = || is_another() && has_been.replace(true);
        match cat::print(&log, args, start.from, cat::AtTrimmed::GoOn, &is_elsewhere) {
            Ok(printed) => {
                let printed = start.outcome(printed);
                outcome = if printed == Outcome::Good { outcome } else { printed };
            }
            Err(error) if !is_another() => return Err(error),
            Err(error) => output::say(as_typed(&error)),
        }
        if is_output_closed() {
            break;
        }
        output::say(format_args!("{} was made anew; going on with it", path.display()));
    }
    Ok(outcome)
}

/// The log, once there is one; `None` when no reader is left.
fn wait_for(path: &Path) -> Result<Option<(Log, Identity)>> {
    let mut has_said = false;
    while !is_output_closed() {
        let before = identity(path);
        match open_to_read(path) {
            Err(error) if is_missing(&error) => {
                if !std::mem::replace(&mut has_said, true) {
                    output::say(format_args!("{} is no log yet; waiting", path.display()));
                }
            }
            Err(error) => return Err(error),
            Ok(log) => match (before, identity(path)) {
                (Ok(before), Ok(after)) if before == after => return Ok(Some((log, after))),
                // It was exchanged just now.
                _ => continue,
            },
        }
        thread::sleep(LOOK_FOR_LOG);
    }
    Ok(None)
}

fn identity(path: &Path) -> io::Result<Identity> {
    let path = log_directory(path);
    let (directory, control) = (fs::metadata(&path)?, fs::metadata(path.join("control"))?);
    Ok(Identity { device: directory.dev(), directory: directory.ino(), control: control.ino() })
}
