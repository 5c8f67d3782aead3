//! `vellum bench read`.

use std::path::Path;

use vellum_bench::read::Config;
use vellum_command::outcome::{Outcome, Result};

use super::{measure, take};
use crate::args::BenchReadArgs;

/// Runs the suite.
pub(crate) fn run(args: &BenchReadArgs) -> Result<Outcome> {
    measure(&args.place, &args.output, args.rounds, |dir| Ok(config(args, dir)))
}

fn config(args: &BenchReadArgs, dir: &Path) -> Config {
    let mut config = if args.quick { Config::quick(dir) } else { Config::new(dir) };
    let bytes: Vec<usize> = args.bytes.iter().map(|bytes| *bytes as usize).collect();
    take(&mut config.bytes, &bytes);
    take(&mut config.ways, &args.ways);
    config.total_bytes = args.total.unwrap_or(config.total_bytes);
    config
}
