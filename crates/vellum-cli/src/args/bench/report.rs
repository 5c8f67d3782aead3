//! `vellum bench report`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::BenchOutputArgs;
use crate::args::examples;

/// Make a page with charts, or Markdown, from saved results
///
/// The results of several suites, or of several runs, come together in one report, in the order of
/// the files. Without an option it is printed as Markdown.
#[derive(Args, Debug)]
#[command(after_help = examples::BENCH_REPORT)]
pub(crate) struct BenchReportArgs {
    /// What --json wrote
    #[arg(required = true, value_name = "RESULTS", value_hint = ValueHint::FilePath)]
    pub(crate) results: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) outputs: BenchOutputArgs,
}
