//! `vellum bench commit`.

use std::path::Path;
use std::time::Duration;

use vellum_bench::commit::Config;
use vellum_command::outcome::{Outcome, Result};

use super::{measure, take};
use crate::args::BenchCommitArgs;

/// Runs the suite.
pub(crate) fn run(args: &BenchCommitArgs) -> Result<Outcome> {
    measure(&args.place, &args.output, args.rounds, |dir| Ok(config(args, dir)))
}

fn config(args: &BenchCommitArgs, dir: &Path) -> Config {
    let mut config = if args.quick { Config::quick(dir) } else { Config::new(dir) };
    if !args.bytes.is_empty() {
        config.bytes = args.bytes.iter().map(|bytes| *bytes as usize).collect();
    }
    take(&mut config.threads, &args.threads);
    take(&mut config.processes, &args.processes);
    take(&mut config.prepared, &args.prepared);
    config.cases.clone_from(&args.cases);
    config.slice = args.slice_ms.map_or(config.slice, Duration::from_millis);
    config
}
