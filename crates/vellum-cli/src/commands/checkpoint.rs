//! `vellum checkpoint`: the position from which the log's user recovers.

use serde::Serialize;

use super::{open_to_read, open_to_write};
use crate::lowargs::CheckpointArgs;
use crate::outcome::{Outcome, Result};
use crate::output;

#[derive(Serialize)]
struct JsonCheckpoint {
    checkpoint: u64,
}

pub(super) fn run(args: &CheckpointArgs) -> Result<Outcome> {
    let checkpoint = match args.lsn {
        Some(lsn) => {
            let log = open_to_write(&args.log)?;
            log.set_checkpoint(lsn)?;
            log.checkpoint()
        }
        None => open_to_read(&args.log)?.checkpoint(),
    };
    if args.json {
        output::print_json(&JsonCheckpoint { checkpoint: checkpoint.get() })?;
    } else if args.lsn.is_some() {
        output::say(format_args!("the checkpoint is {checkpoint}"));
    } else {
        output::print(&format!("{checkpoint}\n"))?;
    }
    Ok(Outcome::Good)
}
