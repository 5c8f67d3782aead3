//! `vellum bench append`.

use std::path::Path;

use vellum_bench::Setting;
use vellum_bench::append::Config;
use vellum_command::outcome::{Outcome, Result};

use super::{measure, take};
use crate::args::BenchAppendArgs;

/// Runs the suite.
pub(crate) fn run(args: &BenchAppendArgs) -> Result<Outcome> {
    if args.saturate {
        return super::saturate::run(args);
    }
    measure(&args.place, &args.output, args.rounds, |dir| Ok(config(args, dir)))
}

fn config(args: &BenchAppendArgs, dir: &Path) -> Config {
    let mut config = if args.quick { Config::quick(dir) } else { Config::new(dir) };
    take(&mut config.ways, &args.ways);
    if !args.settings.is_empty() {
        config.settings.clone_from(&args.settings);
    } else if let Some(settings) = combinations(args, config.settings[0]) {
        config.settings = settings;
    }
    config
}

/// Every combination of the lists; what has no list is as in the setting `usual`.
fn combinations(args: &BenchAppendArgs, usual: Setting) -> Option<Vec<Setting>> {
    let (processes, records) = (&args.processes, &args.records);
    let bytes: Vec<usize> = args.bytes.iter().map(|bytes| *bytes as usize).collect();
    if processes.is_empty() && records.is_empty() && bytes.is_empty() {
        return None;
    }
    let mut settings = Vec::new();
    for &processes in list(processes, &usual.processes) {
        for &records in list(records, &usual.records) {
            for &bytes in list(&bytes, &usual.bytes) {
                settings.push(Setting::new(processes, records, bytes));
            }
        }
    }
    Some(settings)
}

fn list<'a, T>(asked_for: &'a [T], usual: &'a T) -> &'a [T] {
    if asked_for.is_empty() { std::slice::from_ref(usual) } else { asked_for }
}
