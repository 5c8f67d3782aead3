//! `vellum bench latency`.

use std::path::Path;

use vellum_bench::latency::Config;
use vellum_command::outcome::{Outcome, Result};

use super::{measure, take};
use crate::args::BenchLatencyArgs;

/// Runs the suite.
pub(crate) fn run(args: &BenchLatencyArgs) -> Result<Outcome> {
    measure(&args.place, &args.output, args.rounds, |dir| Ok(config(args, dir)))
}

fn config(args: &BenchLatencyArgs, dir: &Path) -> Config {
    let mut config = if args.quick { Config::quick(dir) } else { Config::new(dir) };
    let bytes: Vec<usize> = args.bytes.iter().map(|bytes| *bytes as usize).collect();
    take(&mut config.ways, &args.ways);
    take(&mut config.rates, &args.rates);
    take(&mut config.commit_rates, &args.commit_rates);
    take(&mut config.bytes, &bytes);
    take(&mut config.writers, &args.writers);
    take(&mut config.committers, &args.committers);
    take(&mut config.readers, &args.readers);
    config.duration = args.seconds.unwrap_or(config.duration);
    config
}
