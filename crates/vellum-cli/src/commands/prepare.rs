//! `vellum prepare`: segments made ready ahead of need.

use serde::Serialize;

use super::open_to_write;
use crate::lowargs::PrepareArgs;
use crate::outcome::{Outcome, Result};
use crate::{output, table};

#[derive(Serialize)]
struct JsonPrepare {
    segments_made: u64,
}

pub(super) fn run(args: &PrepareArgs) -> Result<Outcome> {
    let log = open_to_write(&args.log)?;
    let segments_made = log.prepare(args.segments)?;
    if args.json {
        output::print_json(&JsonPrepare { segments_made })?;
    } else {
        output::say(format_args!("{} made ready", table::count(segments_made, "segment")));
    }
    Ok(Outcome::Good)
}
