//! `vellum bench image`.

use std::path::Path;

use vellum_bench::image::Config;
use vellum_command::outcome::{Outcome, Result};

use super::{measure, take};
use crate::args::{BenchImageArgs, CheckWith};

/// Runs the suite.
pub(crate) fn run(args: &BenchImageArgs) -> Result<Outcome> {
    measure(&args.place, &args.output, args.rounds, |dir| Ok(config(args, dir)))
}

fn config(args: &BenchImageArgs, dir: &Path) -> Config {
    let mut config = if args.quick { Config::quick(dir) } else { Config::new(dir) };
    take(&mut config.states, &args.states);
    take(&mut config.engines, &args.engines);
    config.bytes = args.bytes.unwrap_or(config.bytes);
    config.duration = args.seconds.unwrap_or(config.duration);
    config.depth = args.depth;
    config.check_with_fio = args.check_with == Some(CheckWith::Fio);
    config
}
