//! `vellum trim`: the oldest part of a log goes.

use serde::Serialize;

use super::open_to_write;
use crate::lowargs::TrimArgs;
use crate::outcome::{Outcome, Result};
use crate::{output, table};

#[derive(Serialize)]
struct JsonTrim {
    begin: u64,
    segments_removed: u64,
}

pub(super) fn run(args: &TrimArgs) -> Result<Outcome> {
    let log = open_to_write(&args.log)?;
    let report = log.trim(args.before)?;
    if args.json {
        output::print_json(&JsonTrim {
            begin: report.begin.get(),
            segments_removed: report.segments_removed,
        })?;
    } else {
        let segments = table::count(report.segments_removed, "segment");
        output::say(format_args!("{segments} removed; the log begins at {}", report.begin));
    }
    Ok(Outcome::Good)
}
