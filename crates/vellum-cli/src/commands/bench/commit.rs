//! `vellum bench commit`.

use std::path::Path;
use std::time::Duration;

use vellum_bench::commit::{self, Config};

use super::{begin, deliver, judge, take};
use crate::lowargs::BenchCommitArgs;
use crate::outcome::{Outcome, Result};
use crate::progress::BenchBar;

/// Runs the suite.
pub(in crate::commands) fn run(args: BenchCommitArgs) -> Result<Outcome> {
    let (outputs, scratch) = begin(&args.place, &args.output)?;
    let report = commit::run(&config(&args, scratch.path()), &mut BenchBar::default())?;
    deliver(outputs, &[&report])?;
    judge(report.failures().map(|case| case.case.clone()).collect())
}

fn config(args: &BenchCommitArgs, dir: &Path) -> Config {
    let mut config = if args.quick { Config::quick(dir) } else { Config::new(dir) };
    config.in_directory = args.place.is_in_directory();
    config.scratch.clone_from(&args.place.fs);
    if !args.bytes.is_empty() {
        config.bytes = args.bytes.iter().map(|bytes| *bytes as usize).collect();
    }
    take(&mut config.threads, &args.threads);
    take(&mut config.processes, &args.processes);
    take(&mut config.prepared, &args.prepared);
    config.cases.clone_from(&args.cases);
    config.rounds = args.rounds.unwrap_or(config.rounds);
    config.slice = args.slice_ms.map_or(config.slice, Duration::from_millis);
    config
}
