//! `vellum bench append --saturate`.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use vellum_bench::Error;
use vellum_bench::saturate::Config;
use vellum_command::outcome::{Outcome, Result};

use super::{measure, take};
use crate::args::BenchAppendArgs;

/// Runs the suite.
pub(super) fn run(args: &BenchAppendArgs) -> Result<Outcome> {
    measure(&args.place, &args.output, args.rounds, |dir| config(args, dir))
}

fn config(args: &BenchAppendArgs, dir: &Path) -> Result<Config> {
    let mut config = if args.quick { Config::quick(dir) } else { Config::new(dir) };
    take(&mut config.ways, &args.ways);
    if let Some(processes) = only(&args.processes, "--processes")? {
        config.processes = processes;
    }
    if let Some(bytes) = only(&args.bytes, "--bytes")? {
        config.bytes = usize::try_from(bytes).context("--bytes is too large")?;
    }
    config.duration = args.seconds.map_or(config.duration, Duration::from_secs);
    config.bytes_max = args.bytes_max;
    config.kept_bytes = args.keep.or(config.kept_bytes);
    Ok(config)
}

/// The one value of a list that may have several elsewhere.
fn only<T: Copy>(list: &[T], option: &str) -> Result<Option<T>> {
    match list {
        [] => Ok(None),
        [one] => Ok(Some(*one)),
        _ => Err(Error::invalid(format!("--saturate takes one value of {option}")).into()),
    }
}
