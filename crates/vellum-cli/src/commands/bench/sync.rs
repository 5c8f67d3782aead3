//! `vellum bench sync`.

use std::path::Path;

use vellum_bench::sync::Config;
use vellum_command::outcome::{Outcome, Result};

use super::{measure, take};
use crate::args::BenchSyncArgs;

/// Runs the suite.
pub(crate) fn run(args: &BenchSyncArgs) -> Result<Outcome> {
    measure(&args.place, &args.output, args.rounds, |dir| Ok(config(args, dir)))
}

fn config(args: &BenchSyncArgs, dir: &Path) -> Config {
    let mut config = if args.quick { Config::quick(dir) } else { Config::new(dir) };
    take(&mut config.ways, &args.cases);
    take(&mut config.pieces, &args.piece);
    take(&mut config.threads, &args.threads);
    config.bytes = args.bytes.unwrap_or(config.bytes);
    config.big_bytes = args.big;
    config
}
