//! `vellum bench report`.

use vellum_command::outcome::{Outcome, Result};

use super::reports::{Form, open, written};
use super::saved;
use crate::args::BenchReportArgs;

/// Makes a report of results that are there already. Cases that failed are told in it, and are no
/// failure of this.
pub(crate) fn run(args: &BenchReportArgs) -> Result<Outcome> {
    // Before the files are opened for writing: one of them may be among those that are read.
    let mut reports = Vec::new();
    for path in &args.results {
        reports.extend(saved(path)?);
    }
    let outputs = open(&args.outputs)?;
    let text = if outputs.is_empty() { written(Form::Markdown, &reports)? } else { String::new() };
    outputs.write(&text, |form| written(form, &reports))?;
    Ok(Outcome::Good)
}
