//! `vellum bench sync`.

use std::path::Path;

use vellum_bench::ScratchKind;
use vellum_bench::sync::{self, Config};

use super::{Outputs, deliver, judge};
use crate::lowargs::BenchSyncArgs;
use crate::outcome::{Outcome, Result};
use crate::progress::BenchBar;
use crate::scratch::Scratch;

/// Runs the suite.
pub(in crate::commands) fn run(args: BenchSyncArgs) -> Result<Outcome> {
    ScratchKind::check(&args.place.fs)?;
    let outputs = Outputs::open(&args.output)?;
    let scratch = Scratch::new("bench", &args.place.home())?;
    let report = sync::run(&config(&args, scratch.path()), &mut BenchBar::default())?;
    deliver(outputs, &[&report])?;
    judge(report.failures().map(|case| case.case.to_string()).collect())
}

fn config(args: &BenchSyncArgs, dir: &Path) -> Config {
    let mut config = if args.quick { Config::quick(dir) } else { Config::new(dir) };
    config.in_directory = args.place.is_in_directory();
    config.scratch.clone_from(&args.place.fs);
    if !args.cases.is_empty() {
        config.ways.clone_from(&args.cases);
    }
    config.bytes = args.bytes.unwrap_or(config.bytes);
    config.big_bytes = args.big;
    config.rounds = args.rounds.unwrap_or(config.rounds);
    config
}
