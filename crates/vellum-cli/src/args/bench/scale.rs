//! `vellum bench scale`.

use clap::Args;
use vellum_bench::WayName;
use vellum_bench::scale::ScaleTable;

use super::{BenchOutputArgs, BenchPlaceArgs};
use crate::args::examples;

/// What do many logs, many processes and many segments cost?
///
/// One table for each: logs that one process has open, processes that share one log, segments of
/// one log. Shown are times, memory, file descriptors and mappings, and as `growth` the multiple of
/// what the smallest number costs. A fourth table, `line`, has what a cache line costs that two
/// cores want. All take turns in rounds, the first of which is not counted; every record is read
/// back and compared.
///
/// A case that the limits of this system do not allow is left out, with the limit that would.
#[derive(Args, Debug)]
#[command(after_help = examples::BENCH_SCALE)]
pub(crate) struct BenchScaleArgs {
    /// Which tables: logs, processes, segments, line [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) tables: Vec<ScaleTable>,
    /// How many logs one process has open [default: 1,10,100,1000]
    #[arg(long, value_name = "COUNTS", value_delimiter = ',')]
    pub(crate) logs: Vec<u32>,
    /// How many processes share one log [default: 1,10,100]
    #[arg(long, value_name = "COUNTS", value_delimiter = ',')]
    pub(crate) processes: Vec<u32>,
    /// How many segments one log has [default: 1,100,1000,10000]
    #[arg(long, value_name = "COUNTS", value_delimiter = ',')]
    pub(crate) segments: Vec<u32>,
    /// How many records of 128 bytes are appended, to all logs or by all processes together
    /// [default: 200000]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) records: Option<u64>,
    /// Which ways to append, as for `bench append` [default: vellum-framed,vellum-text,write]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) ways: Vec<WayName>,
    /// How many rounds are counted [default: 3]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: Option<u32>,
    /// Two numbers for each table and one round, as far as nothing else is asked for
    #[arg(long)]
    pub(crate) quick: bool,
    #[command(flatten)]
    pub(crate) place: BenchPlaceArgs,
    #[command(flatten)]
    pub(crate) output: BenchOutputArgs,
}
