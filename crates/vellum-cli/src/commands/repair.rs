//! `vellum repair`: what is readable of a damaged log, saved into a new one.

use serde::Serialize;
use vellum::stat::RepairReport;
use vellum_command::outcome::{Outcome, Result};
use vellum_command::output::{self, Output};

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
    let report = vellum::repair(&args.source, &args.target)?;
    if args.json {
        output::print_json(&JsonRepair {
            records: report.records,
            record_bytes: report.record_bytes,
            damage: report.damage.iter().map(JsonDamage::from).collect(),
        })?;
    } else {
        let mut output = Output::default();
        for damage in &report.damage {
            output.bytes(verify::line(damage).as_bytes())?;
        }
        output.flush()?;
        output::say(format_args!("{} in {}", summary(&report), args.target.display()));
    }
    Ok(if report.damage.is_empty() { Outcome::Good } else { Outcome::Damaged })
}

fn summary(report: &RepairReport) -> String {
    let records = table::count(report.records, "record");
    let saved = format!("{records} of {} saved", table::bytes(report.record_bytes));
    match report.damage.len() as u64 {
        0 => saved,
        places => format!("damage left out in {}; {saved}", table::count(places, "place")),
    }
}
