//! `vellum bench write`.

use std::path::Path;

use vellum_bench::write::{self, Config};
use vellum_bench::{Row, ScratchKind};

use super::{Outputs, deliver, judge};
use crate::lowargs::BenchWriteArgs;
use crate::outcome::{Outcome, Result};
use crate::progress::BenchBar;
use crate::scratch::Scratch;

/// Runs the suite.
pub(in crate::commands) fn run(args: BenchWriteArgs) -> Result<Outcome> {
    ScratchKind::check(&args.place.fs)?;
    let outputs = Outputs::open(&args.output)?;
    let scratch = Scratch::new("bench", &args.place.home())?;
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

/// What is asked for, if anything is.
fn take<T: Clone>(into: &mut Vec<T>, asked: &[T]) {
    if !asked.is_empty() {
        *into = asked.to_vec();
    }
}

/// Many rows may fail for one reason; the table and the way tell which.
fn name(row: &Row) -> String {
    format!("{} {}", row.table, row.value("way").unwrap_or_default())
}
