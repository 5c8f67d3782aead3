//! `vellum bench image`.

use std::path::Path;

use vellum_bench::Row;
use vellum_bench::image::{self, Config};

use super::{begin, deliver, judge, take};
use crate::lowargs::{BenchImageArgs, CheckWith};
use crate::outcome::{Outcome, Result};
use crate::progress::BenchBar;

/// Runs the suite.
pub(in crate::commands) fn run(args: BenchImageArgs) -> Result<Outcome> {
    let (outputs, scratch) = begin(&args.place, &args.output)?;
    let report = image::run(&config(&args, scratch.path()), &mut BenchBar::default())?;
    deliver(outputs, &[&report])?;
    judge(report.failures().map(name).collect())
}

fn name(row: &Row) -> String {
    let values: Vec<&str> = row.keys.iter().map(|key| key.value.as_str()).collect();
    values.join(" ")
}

fn config(args: &BenchImageArgs, dir: &Path) -> Config {
    let mut config = if args.quick { Config::quick(dir) } else { Config::new(dir) };
    config.in_directory = args.place.is_in_directory();
    config.scratch.clone_from(&args.place.fs);
    take(&mut config.states, &args.states);
    take(&mut config.engines, &args.engines);
    config.bytes = args.bytes.unwrap_or(config.bytes);
    config.duration = args.seconds.unwrap_or(config.duration);
    config.rounds = args.rounds.unwrap_or(config.rounds);
    config.depth = args.depth;
    config.check_with_fio = args.check_with == Some(CheckWith::Fio);
    config
}
