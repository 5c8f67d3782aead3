//! `vellum bench all`: every suite with its usual settings.

use std::path::Path;

use vellum_bench::{ReportView, append, commit, image, saturate, sync, write};

use super::{begin, deliver, judge};
use crate::lowargs::{BenchAllArgs, BenchPlaceArgs};
use crate::outcome::{Outcome, Result};
use crate::output;
use crate::progress::{BenchBar, SuitesBar};

/// A suite, as this command sees it.
struct Suite {
    name: &'static str,
    /// How long it takes in one place, about, in seconds: quick, and in full. For the time left.
    seconds: (u64, u64),
    run: fn(&Run<'_>, &mut BenchBar) -> vellum_bench::Result<Done>,
}

/// What a suite is told.
struct Run<'a> {
    is_quick: bool,
    place: &'a BenchPlaceArgs,
    dir: &'a Path,
}

/// What a suite came to: its report, and what failed in it.
type Done = (Box<dyn ReportView>, Vec<String>);

/// Makes a [`Suite`] of a module of the harness, all of which have the same shape.
macro_rules! suite {
    ($suite:ident, $quick:literal, $full:literal) => {
        Suite {
            name: stringify!($suite),
            seconds: ($quick, $full),
            run: |run, bar| {
                let new = if run.is_quick { $suite::Config::quick } else { $suite::Config::new };
                let mut config = new(run.dir);
                config.in_directory = run.place.is_in_directory();
                config.scratch.clone_from(&run.place.fs);
                let report = $suite::run(&config, bar)?;
                let rows = report.rows();
                let failed = rows.iter().filter(|row| row.failed.is_some());
                let name = |row: &vellum_bench::Row| {
                    let way = row.value("way").or_else(|| row.value("case"));
                    format!("{} {}", stringify!($suite), way.unwrap_or("?"))
                };
                let failed = failed.map(name).collect();
                Ok((Box::new(report), failed))
            },
        }
    };
}

/// In the order in which they run.
const SUITES: [Suite; 6] = [
    suite!(append, 10, 480),
    suite!(commit, 25, 300),
    suite!(sync, 10, 60),
    suite!(write, 30, 1800),
    suite!(image, 30, 600),
    suite!(saturate, 30, 360),
];

/// Runs them.
pub(in crate::commands) fn run(args: &BenchAllArgs) -> Result<Outcome> {
    let (outputs, scratch) = begin(&args.place, &args.output)?;
    let run = Run { is_quick: args.quick, place: &args.place, dir: scratch.path() };
    let seconds = |suite: &Suite| if args.quick { suite.seconds.0 } else { suite.seconds.1 };
    let bar = SuitesBar::new(SUITES.iter().map(seconds).sum());
    let (mut reports, mut failed) = (Vec::new(), Vec::new());
    for suite in &SUITES {
        let result = (suite.run)(&run, &mut bar.suite(suite.name, seconds(suite)));
        match result {
            Ok((report, failures)) => {
                reports.push(report);
                failed.extend(failures);
            }
            Err(error) => {
                bar.hidden(|| output::say(format_args!("{}: {error}", suite.name)));
                failed.push(suite.name.to_string());
            }
        }
    }
    bar.finish();
    let views: Vec<&dyn ReportView> = reports.iter().map(Box::as_ref).collect();
    deliver(outputs, &views)?;
    judge(failed)
}
