//! `vellum bench write`.

use std::path::Path;

use vellum_bench::write::Config;
use vellum_command::outcome::{Outcome, Result};

use super::{measure, take};
use crate::args::BenchWriteArgs;

/// Runs the suite.
pub(crate) fn run(args: &BenchWriteArgs) -> Result<Outcome> {
    measure(&args.place, &args.output, args.rounds, |dir| Ok(config(args, dir)))
}

fn config(args: &BenchWriteArgs, dir: &Path) -> Config {
    let mut config = if args.quick { Config::quick(dir) } else { Config::new(dir) };
    take(&mut config.tables, &args.tables);
    take(&mut config.sizes, &args.sizes);
    take(&mut config.chunks, &args.chunks);
    take(&mut config.threads, &args.threads);
    take(&mut config.states, &args.states);
    take(&mut config.ways, &args.ways);
    config.bytes = args.bytes.unwrap_or(config.bytes);
    config.piece_bytes = args.piece.unwrap_or(config.piece_bytes);
    config
}
