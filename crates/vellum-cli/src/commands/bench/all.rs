//! `vellum bench all`: every suite with its usual settings.

use vellum_bench::{Report, Suite};
use vellum_command::outcome::{Outcome, Result};
use vellum_command::output;

use super::{Interrupt, begin, deliver, judge};
use crate::args::BenchAllArgs;
use vellum_doctor::progress::SuitesBar;

/// How long a suite takes in one place, about, in seconds: quick, and in full. For the time left.
fn seconds(suite: &dyn Suite, is_quick: bool) -> u64 {
    let (quick, full) = match suite.name() {
        "append" => (10, 480),
        "commit" => (25, 300),
        "sync" => (10, 60),
        "write" => (30, 1800),
        "image" => (30, 600),
        "latency" => (25, 1200),
        "read" => (15, 120),
        "scale" => (10, 240),
        _ => (30, 360),
    };
    if is_quick { quick } else { full }
}

/// The text below all tables.
fn summary(reports: &[Report]) -> String {
    let findings = vellum_bench::findings_text(reports);
    if findings.is_empty() { findings } else { format!("\nWhat these figures say\n\n{findings}") }
}

/// Runs them.
pub(crate) fn run(args: &BenchAllArgs) -> Result<Outcome> {
    let (outputs, scratch) = begin(&args.place, &args.output)?;
    let seconds = |suite: &dyn Suite| seconds(suite, args.quick);
    let mut suites = vellum_bench::suites(scratch.path(), args.quick);
    let bar = SuitesBar::new(suites.iter().map(|suite| seconds(&**suite)).sum());
    let (mut reports, mut failed) = (Vec::new(), Vec::new());
    let mut interrupt = Interrupt::take()?;
    for suite in &mut suites {
        args.place.apply_to(suite.scope_mut());
        let name = suite.name();
        match interrupt.measure(&**suite, &mut bar.suite(name, seconds(&**suite))) {
            Ok(report) => {
                let cases = report.iter().flat_map(Report::failures);
                failed.extend(cases.map(|case| format!("{name} {}", case.name())));
                reports.extend(report);
            }
            Err(error) => {
                bar.hidden(|| output::say(format_args!("{name}: {error}")));
                failed.push(name.to_string());
            }
        }
        if interrupt.has_come() {
            break;
        }
    }
    bar.finish();
    deliver(outputs, &reports, &summary(&reports))?;
    interrupt.outcome().map_or_else(|| judge(failed), Ok)
}
