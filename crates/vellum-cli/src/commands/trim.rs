//! `vellum trim`: the oldest part of a log goes.

use serde::Serialize;
use vellum::{Create, Log, Lsn, Options, Tuning};
use vellum_command::outcome::{Outcome, Result};
use vellum_command::output;

use super::ask::may_go_on;
use super::open::open_to_read;
use crate::args::TrimArgs;
use crate::table;

#[derive(Serialize)]
struct JsonTrim {
    begin: u64,
    segments_removed: u64,
    /// Where a cursor has kept records that were to be dropped.
    held_at: Option<u64>,
}

pub(super) fn run(args: &TrimArgs) -> Result<Outcome> {
    if !args.yes && !is_agreed(args)? {
        return Ok(Outcome::Failed);
    }
    let log = open(args)?;
    let report = log.trim(args.before)?;
    if args.json {
        output::print_json(&JsonTrim {
            begin: report.begin.get(),
            segments_removed: report.segments_removed,
            held_at: report.held_at.map(Lsn::get),
        })?;
    } else {
        let segments = table::count(report.segments_removed, "segment");
        output::note(
            args.quiet,
            format_args!("{segments} removed; the log begins at {}", report.begin),
        );
        if let Some(lsn) = report.held_at {
            output::note(args.quiet, format_args!("a cursor keeps the records from {lsn} on"));
        }
    }
    Ok(Outcome::Good)
}

/// Opens a log that exists, to keep as many spares as the user asked for.
fn open(args: &TrimArgs) -> Result<Log> {
    let tuning = Tuning::new();
    let tuning = match args.spare_segments_max {
        Some(segments) => tuning.spare_segments_max(segments),
        None => tuning,
    };
    Ok(Options::default().create(Create::Never).tuning(tuning).open(&args.log)?)
}

/// Asks, where records would go.
fn is_agreed(args: &TrimArgs) -> Result<bool> {
    let log = open_to_read(&args.log)?;
    let (begin, end, before) = (log.begin(), log.published(), args.before);
    if before <= begin {
        return Ok(true);
    }
    let log = args.log.display();
    may_go_on(format_args!("{log} holds {begin} to {end}: drop everything before {before}?"))
}
