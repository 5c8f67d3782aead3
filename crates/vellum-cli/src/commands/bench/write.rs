//! `vellum bench write`.

use std::path::Path;

use vellum_bench::Row;
use vellum_bench::write::{self, Config};

use super::{begin, deliver, judge, take};
use crate::lowargs::BenchWriteArgs;
use crate::outcome::{Outcome, Result};
use crate::progress::BenchBar;

/// Runs the suite.
pub(in crate::commands) fn run(args: BenchWriteArgs) -> Result<Outcome> {
    let (outputs, scratch) = begin(&args.place, &args.output)?;
    let report = write::run(&config(&args, scratch.path()), &mut BenchBar::default())?;
    deliver(outputs, &[&report])?;
    let mut failures: Vec<String> = report.failures().map(name).collect();
    failures.sort();
    judge(failures)
}

fn config(args: &BenchWriteArgs, dir: &Path) -> Config {
    let mut config = if args.quick { Config::quick(dir) } else { Config::new(dir) };
    config.in_directory = args.place.is_in_directory();
    config.scratch.clone_from(&args.place.fs);
    take(&mut config.tables, &args.tables);
    take(&mut config.chunks, &args.chunks);
    take(&mut config.threads, &args.threads);
    take(&mut config.states, &args.states);
    take(&mut config.ways, &args.ways);
    config.bytes = args.bytes.unwrap_or(config.bytes);
    config.piece_bytes = args.piece.unwrap_or(config.piece_bytes);
    config.rounds = args.rounds.unwrap_or(config.rounds);
    config
}

/// Many rows may fail for one reason; the table and the way tell which.
fn name(row: &Row) -> String {
    format!("{} {}", row.table, row.value("way").unwrap_or_default())
}
