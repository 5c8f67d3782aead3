//! `vellum bench latency`.

use std::time::Duration;

use clap::Args;
use vellum_bench::latency::{LatencyWay, ReaderKind};

use super::{BenchOutputArgs, BenchPlaceArgs};
use crate::args::{examples, values};

/// Records on a schedule: how long does one of them take?
///
/// Each writer appends so many records a second. Every time is counted from the moment at which the
/// record was due, so a writer that is held up is late for all records of that time, and each of
/// them counts. Shown are the times until the append had returned, and until a reader in another
/// process had the record; for ways that make each record durable, until it was. Quantiles are
/// those of all records of a round, to a part in 32.
///
/// Every combination of the lists is run, and all ways take turns in each. Every record is looked
/// for: one that is lost, torn, doubled or out of order fails the run. Writers and reader spin if
/// each has a core of its own; otherwise writers sleep until a record is due.
///
/// The full run takes about twenty minutes; --quick takes seconds.
#[derive(Args, Debug)]
#[command(after_help = examples::BENCH_LATENCY)]
pub(crate) struct BenchLatencyArgs {
    /// How many records are due in a second, of all writers together
    /// [default: 10000,100000,1000000]
    #[arg(long = "rate", value_name = "COUNTS", value_delimiter = ',')]
    pub(crate) rates: Vec<u64>,
    /// The same for ways that make each record durable [default: 1000,10000]
    #[arg(long = "commit-rate", value_name = "COUNTS", value_delimiter = ',')]
    pub(crate) commit_rates: Vec<u64>,
    /// How long a record is, from 16 bytes on [default: 40,128,1024]
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = values::bytes)]
    pub(crate) bytes: Vec<u64>,
    /// How many processes append [default: 1,2,4]
    #[arg(long, value_name = "COUNTS", value_delimiter = ',')]
    pub(crate) writers: Vec<u32>,
    /// How many processes append and make durable [default: 16]
    #[arg(long, value_name = "COUNTS", value_delimiter = ',')]
    pub(crate) committers: Vec<u32>,
    /// How the reader waits: spinning, sleeping [default: both]
    #[arg(long = "reader", value_name = "KINDS", value_delimiter = ',')]
    pub(crate) readers: Vec<ReaderKind>,
    /// Which ways: vellum-framed, vellum-text, write, writev, pipe; and of those that make each
    /// record durable: vellum-wal, write-fdatasync [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) ways: Vec<LatencyWay>,
    /// For how long records are due in a round [default: 1]
    #[arg(long, value_name = "SECONDS", value_parser = values::seconds)]
    pub(crate) seconds: Option<Duration>,
    /// How many rounds are counted [default: 3]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: Option<u32>,
    /// One writer, 10000 and 100000 a second, 128 bytes, half a second and one round, as far as
    /// nothing else is asked for
    #[arg(long)]
    pub(crate) quick: bool,
    #[command(flatten)]
    pub(crate) place: BenchPlaceArgs,
    #[command(flatten)]
    pub(crate) output: BenchOutputArgs,
}
