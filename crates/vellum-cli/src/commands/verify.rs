//! `vellum verify`: the damage of a log.

use std::fmt::Write;

use serde::Serialize;
use vellum::internal::escaped;
use vellum::stat::{Damage, VerifyReport};
use vellum_command::outcome::{Outcome, Result};
use vellum_command::output::{self, Output};

use super::open::open_to_read;
use crate::args::VerifyArgs;
use crate::table;

pub(super) fn run(args: &VerifyArgs) -> Result<Outcome> {
    let log = open_to_read(&args.log)?;
    let report = log.verify()?;
    let is_good = report.damage.is_empty();
    if args.json {
        output::print_json(&JsonReport::from(&report))?;
    } else if !args.quiet {
        let mut output = Output::default();
        for damage in &report.damage {
            output.bytes(line(damage).as_bytes())?;
        }
        output.flush()?;
        output::say(summary(&report));
    }
    Ok(if is_good { Outcome::Good } else { Outcome::Damaged })
}

/// A damage, and its place, as a line.
pub(super) fn line(damage: &Damage) -> String {
    let Damage { path, offset, lsn, reason, .. } = damage;
    let path = path.display();
    format!("{}\n", escaped(format_args!("{path}:{offset}: lsn {lsn}: {reason}")))
}

fn summary(report: &VerifyReport) -> String {
    let records = table::count(report.records, "record");
    let mut text = format!(
        "{records} of {} from {} to {}",
        table::bytes(report.record_bytes),
        report.begin,
        report.end
    );
    if report.pads > 0 {
        let pads = table::count(report.pads, "pad");
        let _ = write!(text, ", {pads} of {}", table::bytes(report.pad_bytes));
    }
    if report.damage.is_empty() {
        text + ": all good"
    } else {
        format!("{text}; damaged in {}", table::count(report.damage.len() as u64, "place"))
    }
}

#[derive(Serialize)]
struct JsonReport<'a> {
    begin: u64,
    end: u64,
    records: u64,
    record_bytes: u64,
    pads: u64,
    pad_bytes: u64,
    batches: u64,
    damage: Vec<JsonDamage<'a>>,
}

/// The same as JSON.
#[derive(Serialize)]
pub(super) struct JsonDamage<'a> {
    path: String,
    offset: u64,
    lsn: u64,
    reason: &'a str,
}

impl<'a> From<&'a VerifyReport> for JsonReport<'a> {
    fn from(report: &'a VerifyReport) -> JsonReport<'a> {
        JsonReport {
            begin: report.begin.get(),
            end: report.end.get(),
            records: report.records,
            record_bytes: report.record_bytes,
            pads: report.pads,
            pad_bytes: report.pad_bytes,
            batches: report.batches,
            damage: report.damage.iter().map(JsonDamage::from).collect(),
        }
    }
}

impl<'a> From<&'a Damage> for JsonDamage<'a> {
    fn from(damage: &'a Damage) -> JsonDamage<'a> {
        JsonDamage {
            path: damage.path.display().to_string(),
            offset: damage.offset,
            lsn: damage.lsn.get(),
            reason: &damage.reason,
        }
    }
}
