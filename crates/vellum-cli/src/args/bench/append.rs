//! `vellum bench append`.

use clap::Args;
use vellum_bench::{Setting, WayName};

use super::{BenchOutputArgs, BenchPlaceArgs};
use crate::args::{examples, values};

/// Many processes append to one log: what does a record cost?
///
/// Each way of appending runs once in each round, one after the other; the first round is not
/// counted. After each, every record is looked for: one that is lost, torn or doubled fails the
/// run. Shown are median, minimum and maximum of the rounds, and how many times as fast as
/// write(2) with O_APPEND in the same round.
///
/// With --saturate the question is another: what happens when the processes append for longer than
/// memory and device can absorb? Each way appends for --seconds, and the kernel stops a process
/// that makes too many pages dirty. Shown are the latencies of single records, how long a writer
/// stood still, and how much memory and disk it took. Every way keeps the same amount of its log;
/// what was acknowledged and not cut off is looked for.
///
/// The full run takes minutes and writes twenty gigabytes, nearly all of it for the way `direct`;
/// --quick takes seconds.
#[derive(Args, Debug)]
#[command(after_help = examples::BENCH_APPEND)]
pub(crate) struct BenchAppendArgs {
    /// How much, as PROCESSESxRECORDSxBYTES; may be repeated
    /// [default: 4x100000x128,4x100000x1,4x10000x4095]
    #[arg(long = "setting", value_name = "PxRxB", value_delimiter = ',')]
    #[arg(conflicts_with_all = ["processes", "records", "bytes"])]
    pub(crate) settings: Vec<Setting>,
    /// How many processes; with --records and --bytes, every combination is run
    #[arg(long, value_name = "COUNTS", value_delimiter = ',')]
    pub(crate) processes: Vec<u32>,
    /// How many records each process appends
    #[arg(long, value_name = "COUNTS", value_delimiter = ',')]
    pub(crate) records: Vec<u64>,
    /// How long a record is, as 128, 4K or 1M
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = values::bytes)]
    pub(crate) bytes: Vec<u64>,
    /// Which ways of appending: vellum-framed, vellum-text, write, writev, stdio, direct, aio,
    /// io_uring [default: all of these], vellum-c (vellum-framed through the C interface)
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) ways: Vec<WayName>,
    /// How many rounds are counted [default: 5]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: Option<u32>,
    /// A fifth of the records, two rounds, and without the slow ways direct, aio and io_uring,
    /// as far as nothing else is asked for
    #[arg(long)]
    pub(crate) quick: bool,
    /// Append until memory and device can absorb no more
    #[arg(long, conflicts_with_all = ["settings", "records"])]
    pub(crate) saturate: bool,
    /// With --saturate: for how long each way appends [default: 20]
    #[arg(long, value_name = "SECONDS", requires = "saturate")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) seconds: Option<u64>,
    /// With --saturate: a way ends earlier when it has appended so much
    #[arg(long, value_name = "BYTES", requires = "saturate", value_parser = values::bytes)]
    pub(crate) bytes_max: Option<u64>,
    /// With --saturate: how much of a log is kept [default: twice the dirty limit, if there is
    /// room]
    #[arg(long, value_name = "BYTES", requires = "saturate", value_parser = values::bytes)]
    pub(crate) keep: Option<u64>,
    #[command(flatten)]
    pub(crate) place: BenchPlaceArgs,
    #[command(flatten)]
    pub(crate) output: BenchOutputArgs,
}
