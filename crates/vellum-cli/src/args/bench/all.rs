//! `vellum bench all`.

use clap::Args;

use super::{BenchOutputArgs, BenchPlaceArgs};
use crate::args::examples;

/// All suites, one after the other, each with its usual settings
///
/// A suite that fails does not keep the others from running. The tables follow each other; JSON is
/// a list of reports.
///
/// The full run takes half an hour and writes tens of gigabytes; --quick takes less than three
/// minutes for one filesystem.
#[derive(Args, Debug)]
#[command(after_help = examples::BENCH_ALL)]
pub(crate) struct BenchAllArgs {
    /// The quick settings of each suite
    #[arg(long)]
    pub(crate) quick: bool,
    #[command(flatten)]
    pub(crate) place: BenchPlaceArgs,
    #[command(flatten)]
    pub(crate) output: BenchOutputArgs,
}
