//! `vellum bench commit`.

use clap::Args;

use super::{BenchOutputArgs, BenchPlaceArgs};
use crate::lowargs::{examples, values};

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
    /// How long a record is, as 256, 4096 or 1M
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = values::bytes)]
    #[arg(default_value = "256,1024,4096,1M")]
    pub(crate) bytes: Vec<u64>,
    /// How many threads of each process commit
    #[arg(long, value_name = "COUNTS", value_delimiter = ',', default_value = "1,2,4,8,16")]
    pub(crate) threads: Vec<u32>,
    /// How many processes commit
    #[arg(long, value_name = "COUNTS", value_delimiter = ',', default_value = "1")]
    pub(crate) processes: Vec<u32>,
    /// With space made ready before the clock starts, or without: for the cases that can do either
    #[arg(long, value_name = "YES,NO", value_delimiter = ',', default_value = "yes,no")]
    #[arg(value_parser = values::yes_or_no())]
    pub(crate) prepared: Vec<bool>,
    /// Which cases: vellum, bare-append, bare-fallocate, bare-overwrite, direct-dsync [default:
    /// all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) cases: Vec<String>,
    /// How many rounds are counted
    #[arg(long, value_name = "COUNT", default_value = "5")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: u32,
    /// How long each case commits in a round
    #[arg(long, value_name = "MS", default_value = "300")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=60_000))]
    pub(crate) slice_ms: u64,
    #[command(flatten)]
    pub(crate) place: BenchPlaceArgs,
    #[command(flatten)]
    pub(crate) output: BenchOutputArgs,
}
