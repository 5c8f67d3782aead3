//! `vellum bench`: measurements, a file for each suite; here are their common parts.

pub(super) mod all;
pub(super) mod compare;
mod interrupt;
pub(super) mod publish;
pub(super) mod report;
mod reports;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use vellum_bench::{Making, Report, Scope, ScratchKind};
use vellum_command::outcome::{Outcome, Result};

use crate::args::{BenchOutputArgs, BenchPlaceArgs, BenchSuite, BenchSuiteArgs};
use vellum_doctor::progress::BenchBar;
use vellum_doctor::scratch::Scratch;

use interrupt::Interrupt;
use reports::deliver;
pub(super) use reports::{Form, Outputs, open};

impl BenchPlaceArgs {
    /// Filesystems that are made for the run take the place of the directory that no option named.
    fn is_in_directory(&self) -> bool {
        self.dir.is_some() || self.fs.is_empty()
    }

    /// Has a suite run there.
    fn apply_to(&self, scope: &mut Scope) {
        scope.in_directory = self.is_in_directory();
        scope.scratch.clone_from(&self.fs);
        scope.making = self.making();
    }

    /// How filesystems are made for the run.
    fn making(&self) -> Making {
        Making::new(self.mkfs_options.clone(), self.fill)
    }

    /// Where the directory of the run is made.
    fn home(&self) -> PathBuf {
        let usual = if self.is_in_directory() { PathBuf::from(".") } else { std::env::temp_dir() };
        self.dir.clone().unwrap_or(usual)
    }
}

/// The signals that end a run early.
pub(super) fn taken(suite: &BenchSuite) -> &'static [i32] {
    match suite {
        BenchSuite::All(_) | BenchSuite::Suite(_) => &interrupt::TAKEN,
        _ => &[],
    }
}

/// Runs a suite.
pub(super) fn run(args: BenchSuiteArgs) -> Result<Outcome> {
    let BenchSuiteArgs { mut suite, place, output } = args;
    let (outputs, scratch) = begin(&place, &output)?;
    suite.scope_mut().directory = scratch.path().into();
    place.apply_to(suite.scope_mut());
    let mut interrupt = Interrupt::take()?;
    let report = interrupt.measure(&*suite, &mut BenchBar::default())?;
    let failures = report.iter().flat_map(Report::failures).map(|case| case.name()).collect();
    deliver(outputs, report.as_slice(), "")?;
    interrupt.outcome().map_or_else(|| judge(failures), Ok)
}

/// Prepares a suite; a missing tool is reported before minutes are spent.
fn begin<'a>(
    place: &BenchPlaceArgs,
    output: &'a BenchOutputArgs,
) -> Result<(Outputs<'a>, Scratch)> {
    place.making().check(&place.fs)?;
    ScratchKind::check(&place.fs)?;
    let outputs = open(output)?;
    let scratch = Scratch::new("bench", &place.home())?;
    Ok((outputs, scratch))
}

/// The reports in a file that `--json` wrote.
fn saved(path: &Path) -> Result<Vec<Report>> {
    let cannot = || format!("cannot read {}", path.display());
    // Bytes first: bytes that are no text are no JSON either, and that is the clearer complaint.
    let bytes = fs::read(path).with_context(cannot)?;
    Report::from_json(&String::from_utf8_lossy(&bytes)).with_context(cannot)
}

/// A case that failed fails the run: its records were lost, torn or doubled, or it could not
/// continue.
fn judge(mut failures: Vec<String>) -> Result<Outcome> {
    failures.sort();
    failures.dedup();
    if failures.is_empty() {
        return Ok(Outcome::Good);
    }
    bail!("failed: {}; the reasons are in the report", failures.join(", "))
}
