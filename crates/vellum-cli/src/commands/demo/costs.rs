//! The cost of each way of appending: a small run of the suite `append`, as a small table.

use std::path::Path;

use anyhow::bail;
use vellum_bench::append::Config;
use vellum_bench::{Case, Report, Setting, Suite, WayName};
use vellum_command::outcome::Result;

use crate::table::{Align, HEADING, Table};
use vellum_doctor::progress::BenchBar;

const ROUNDS: u32 = 5;
/// The figures that are shown.
const NS: &str = "time";
const RATIO: &str = "speed against write";
const RECORDS: u64 = 50_000;
const RECORD_BYTES: usize = 128;

const WAYS: [(WayName, &str); 5] = [
    (WayName::VellumFramed, "a Vellum log with checksums"),
    (WayName::VellumText, "a Vellum log of plain text"),
    (WayName::Write, "write with O_APPEND"),
    (WayName::Writev, "writev with O_APPEND, two parts"),
    (WayName::Stdio, "fwrite and fflush"),
];

/// Measures in `dir` with as many processes as the demo has writers.
pub(super) fn measure(dir: &Path, processes: u32) -> Result<Report> {
    let mut config = Config::new(dir);
    config.scope.rounds = ROUNDS;
    config.settings = vec![Setting::new(processes, RECORDS, RECORD_BYTES)];
    config.ways = WAYS.map(|(name, _)| name).to_vec();
    let report = config.run(&mut BenchBar::default())?;
    let failures: Vec<String> = report.failures().map(failure).collect();
    if !failures.is_empty() {
        bail!("the measurement failed: {}", failures.join("; "));
    }
    Ok(report)
}

fn failure(case: &Case) -> String {
    format!("{}: {}", case.name(), case.failed.as_deref().unwrap_or_default())
}

/// The table, with the conditions of the measurement.
pub(super) fn table(report: &Report, processes: u32) -> String {
    let mut table = Table::new(&[
        ("way", Align::Left),
        ("", Align::Left),
        ("ns per record", Align::Right),
        ("× write", Align::Right),
    ]);
    for (name, what) in WAYS {
        let Some(case) = case(report, name) else { continue };
        let ns = median(case, NS).map_or_else(dash, |ns| format!("{ns:.0}"));
        let ratio = median(case, RATIO).map_or_else(dash, |ratio| format!("{ratio:.1}"));
        table.row([name.to_string(), what.into(), ns, ratio]);
    }
    let filesystem = report.conditions.filesystem.as_ref().map(|filesystem| &filesystem.kind);
    format!(
        "{HEADING}What a record of {RECORD_BYTES} bytes costs{HEADING:#}\n  {processes} processes, \
         {RECORDS} records each, {}; median of {ROUNDS} rounds, all verified\n\n{}",
        filesystem.map_or("unknown filesystem", String::as_str),
        table.render()
    )
}

fn median(case: &Case, figure: &str) -> Option<f64> {
    Some(case.figure(figure)?.spread()?.median)
}

fn dash() -> String {
    "-".into()
}

/// One sentence: ours against `write`, if both were measured.
pub(super) fn sentence(report: &Report) -> Option<String> {
    let ours = case(report, WayName::VellumFramed)?;
    let (ns, ratio) = (median(ours, NS)?, median(ours, RATIO)?);
    Some(format!(
        "Appending is {ratio:.1} times as fast here as write with O_APPEND: {ns:.0} ns a record, \
         checksum included."
    ))
}

fn case(report: &Report, name: WayName) -> Option<&Case> {
    report.cases.iter().find(|case| case.value("way") == Some(name.as_str()))
}
