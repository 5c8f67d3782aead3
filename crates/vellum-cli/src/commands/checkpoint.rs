//! `vellum checkpoint`: the position from which the log's user recovers.

use serde::Serialize;
use vellum::{ErrorKind, Layout, Log, Lsn};
use vellum_command::outcome::{BadValue, Outcome, Result};
use vellum_command::output;

use super::open::{open_to_read, open_to_write};
use crate::args::CheckpointArgs;

#[derive(Serialize)]
struct JsonCheckpoint {
    checkpoint: u64,
}

pub(super) fn run(args: &CheckpointArgs) -> Result<Outcome> {
    let checkpoint = match args.lsn {
        Some(lsn) => {
            let log = open_to_write(&args.log)?;
            check(&log, lsn)?;
            log.checkpoint().set(lsn)?;
            log.checkpoint().lsn()
        }
        None => open_to_read(&args.log)?.checkpoint().lsn(),
    };
    if args.json {
        output::print_json(&JsonCheckpoint { checkpoint: checkpoint.get() })?;
    } else if args.lsn.is_some() {
        output::note(args.quiet, format_args!("the checkpoint is {checkpoint}"));
    } else {
        output::print(&format!("{checkpoint}\n"))?;
    }
    Ok(Outcome::Good)
}

/// Refuses a position from which no reader could start.
fn check(log: &Log, lsn: Lsn) -> Result<()> {
    let is_start = || match log.reader(lsn) {
        Err(error) if is_no_start(error.kind()) => Ok(false),
        answer => answer.map(|_| true),
    };
    if log.layout() == Layout::Text || lsn != Lsn::ZERO && is_start()? {
        return Ok(());
    }
    Err(BadValue(format!(
        "{lsn} is no checkpoint: neither does a record start there nor does the log end there, \
         which holds positions {} to {}",
        log.begin(),
        log.published()
    ))
    .into())
}

fn is_no_start(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::OutOfRange | ErrorKind::Trimmed)
}
