//! `vellum bench sync`.

use std::path::Path;

use vellum_bench::sync::{self, Config};

use super::{begin, deliver, judge, take};
use crate::lowargs::BenchSyncArgs;
use crate::outcome::{Outcome, Result};
use crate::progress::BenchBar;

/// Runs the suite.
pub(in crate::commands) fn run(args: BenchSyncArgs) -> Result<Outcome> {
    let (outputs, scratch) = begin(&args.place, &args.output)?;
    let report = sync::run(&config(&args, scratch.path()), &mut BenchBar::default())?;
    deliver(outputs, &[&report])?;
    judge(report.failures().map(|case| case.case.to_string()).collect())
}

fn config(args: &BenchSyncArgs, dir: &Path) -> Config {
    let mut config = if args.quick { Config::quick(dir) } else { Config::new(dir) };
    config.in_directory = args.place.is_in_directory();
    config.scratch.clone_from(&args.place.fs);
    take(&mut config.ways, &args.cases);
    config.bytes = args.bytes.unwrap_or(config.bytes);
    config.big_bytes = args.big;
    config.rounds = args.rounds.unwrap_or(config.rounds);
    config
}
