//! `vellum bench read`.

use clap::Args;
use vellum_bench::read::ReadWay;

use super::{BenchOutputArgs, BenchPlaceArgs};
use crate::args::{examples, values};

/// What does it cost to read a log: in order, at random, backwards, and to recover it?
///
/// Each case writes its log, then reads it from the page cache, in one thread. All take turns in
/// rounds, the first of which is not counted; after each, the log is read once more and every
/// record is compared with what was written. In order, logs are compared with a file that is split
/// into lines; at random, with `pread`.
#[derive(Args, Debug)]
#[command(after_help = examples::BENCH_READ)]
pub(crate) struct BenchReadArgs {
    /// How long a record is [default: 128,4096]
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = values::bytes)]
    pub(crate) bytes: Vec<u64>,
    /// How many bytes of records a log holds [default: 64MiB]
    #[arg(long, value_name = "BYTES", value_parser = values::bytes)]
    pub(crate) total: Option<u64>,
    /// Which ways: framed, text, lines, bytes, framed-at, text-at, framed-seek, text-seek,
    /// pread, framed-back, text-back, framed-recover, text-recover [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) ways: Vec<ReadWay>,
    /// How many rounds are counted [default: 5]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: Option<u32>,
    /// 8 MiB and two rounds, as far as nothing else is asked for
    #[arg(long)]
    pub(crate) quick: bool,
    #[command(flatten)]
    pub(crate) place: BenchPlaceArgs,
    #[command(flatten)]
    pub(crate) output: BenchOutputArgs,
}
