//! `vellum repair`: saves the readable records of a damaged log into a new one.

use std::fs;
use std::path::Path;

use serde::Serialize;
use vellum::stat::RepairReport;
use vellum_command::outcome::{Outcome, Result};
use vellum_command::output::{self, Output};

use super::ask::may_go_on;
use super::verify::{self, JsonDamage};
use crate::args::RepairArgs;
use crate::table;

#[derive(Serialize)]
struct JsonRepair<'a> {
    records: u64,
    record_bytes: u64,
    damage: Vec<JsonDamage<'a>>,
}

pub(super) fn run(args: &RepairArgs) -> Result<Outcome> {
    if !args.yes && has_other_files(&args.target) {
        let target = args.target.display();
        if !may_go_on(format_args!("{target} is there already, with files in it: save into it?"))? {
            return Ok(Outcome::Failed);
        }
    }
    let report = vellum::repair(&args.source, &args.target)?;
    if args.json {
        output::print_json(&JsonRepair {
            records: report.records,
            record_bytes: report.record_bytes,
            damage: report.damage.iter().map(JsonDamage::from).collect(),
        })?;
    } else if !args.quiet {
        let mut output = Output::default();
        for damage in &report.damage {
            output.bytes(verify::line(damage).as_bytes())?;
        }
        output.flush()?;
        output::say(format_args!("{} in {}", summary(&report), args.target.display()));
    }
    Ok(if report.damage.is_empty() { Outcome::Good } else { Outcome::Damaged })
}

/// Whether something is there that is no log: a log is refused anyway.
fn has_other_files(target: &Path) -> bool {
    let has_files = fs::read_dir(target).is_ok_and(|mut files| files.next().is_some());
    has_files && !target.join("control").exists()
}

fn summary(report: &RepairReport) -> String {
    let records = table::count(report.records, "record");
    let saved = format!("{records} of {} saved", table::bytes(report.record_bytes));
    match report.damage.len() as u64 {
        0 => saved,
        places => format!("damage left out in {}; {saved}", table::count(places, "place")),
    }
}
