//! `vellum bench scale`.

use std::path::Path;

use vellum_bench::scale::Config;
use vellum_command::outcome::{Outcome, Result};

use super::{measure, take};
use crate::args::BenchScaleArgs;

/// Runs the suite.
pub(crate) fn run(args: &BenchScaleArgs) -> Result<Outcome> {
    measure(&args.place, &args.output, args.rounds, |dir| Ok(config(args, dir)))
}

fn config(args: &BenchScaleArgs, dir: &Path) -> Config {
    let mut config = if args.quick { Config::quick(dir) } else { Config::new(dir) };
    take(&mut config.tables, &args.tables);
    take(&mut config.ways, &args.ways);
    take(&mut config.logs, &args.logs);
    take(&mut config.processes, &args.processes);
    take(&mut config.segments, &args.segments);
    config.records = args.records.unwrap_or(config.records);
    config
}
