//! `vellum bench image`.

use std::path::Path;

use vellum_bench::image::{self, Config};
use vellum_bench::{Row, ScratchKind};

use super::{Outputs, deliver, judge};
use crate::lowargs::{BenchImageArgs, CheckWith};
use crate::outcome::{Outcome, Result};
use crate::progress::BenchBar;
use crate::scratch::Scratch;

/// Runs the suite.
pub(in crate::commands) fn run(args: BenchImageArgs) -> Result<Outcome> {
    ScratchKind::check(&args.place.fs)?;
    let outputs = Outputs::open(&args.output)?;
    let scratch = Scratch::new("bench", &args.place.home())?;
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
    if !args.states.is_empty() {
        config.states.clone_from(&args.states);
    }
    if !args.engines.is_empty() {
        config.engines.clone_from(&args.engines);
    }
    config.bytes = args.bytes.unwrap_or(config.bytes);
    config.duration = args.seconds.unwrap_or(config.duration);
    config.rounds = args.rounds.unwrap_or(config.rounds);
    config.depth = args.depth;
    config.check_with_fio = args.check_with == Some(CheckWith::Fio);
    config
}
