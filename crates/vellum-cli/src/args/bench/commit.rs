//! `vellum bench commit`.

use clap::Args;

use super::{BenchOutputArgs, BenchPlaceArgs};
use crate::args::{examples, values};

/// What does it cost to make a record survive a power cut?
///
/// In every combination of --bytes, --threads and --processes each case commits for a short slice
/// of time in each round, one after the other; the first round is not counted. After each, every
/// record is looked for: one that is lost, damaged or doubled fails the run. Latencies are those of
/// all rounds; speeds are compared with the limit, `direct-dsync`, in the same round: every thread
/// overwrites written blocks of its own, without a log.
///
/// The full run takes about five minutes.
#[derive(Args, Debug)]
#[command(after_help = examples::BENCH_COMMIT)]
pub(crate) struct BenchCommitArgs {
    /// How long a record is, as 256, 4096 or 1M [default: 256,1024,4096,1M]
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = values::bytes)]
    pub(crate) bytes: Vec<u64>,
    /// How many threads of each process commit [default: 1,2,4,8,16]
    #[arg(long, value_name = "COUNTS", value_delimiter = ',')]
    pub(crate) threads: Vec<u32>,
    /// How many processes commit [default: 1]
    #[arg(long, value_name = "COUNTS", value_delimiter = ',')]
    pub(crate) processes: Vec<u32>,
    /// With space made ready before the clock starts, or without: for the cases that can do either
    /// [default: yes,no]
    #[arg(long, value_name = "YES,NO", value_delimiter = ',')]
    #[arg(value_parser = values::yes_or_no())]
    pub(crate) prepared: Vec<bool>,
    /// Which cases: vellum, bare-append, bare-fallocate, bare-overwrite, direct-dsync [default:
    /// all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) cases: Vec<String>,
    /// How many rounds are counted [default: 5]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: Option<u32>,
    /// How long each case commits in a round [default: 300]
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=60_000))]
    pub(crate) slice_ms: Option<u64>,
    /// 256 and 4096 bytes, 1 and 4 threads, prepared, two rounds of 100 ms, as far as nothing else
    /// is asked for
    #[arg(long)]
    pub(crate) quick: bool,
    #[command(flatten)]
    pub(crate) place: BenchPlaceArgs,
    #[command(flatten)]
    pub(crate) output: BenchOutputArgs,
}
