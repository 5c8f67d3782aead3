//! `vellum bench sync`.

use clap::Args;
use vellum_bench::sync::SyncWay;

use super::{BenchOutputArgs, BenchPlaceArgs};
use crate::args::{examples, values};

/// 5 MiB in pieces of 4 KiB, each synced: what does the state of the file cost?
///
/// A file that grows, one that is written with zeros first, one that is allocated in different
/// ways; several ways to sync; and all at once with a single sync. All take turns in rounds, the
/// first of which is not counted; after each, the file is read back and compared. Times are
/// compared with the file that grows, in the same round: below 1 is faster. Every combination of
/// --piece and --threads is a table. What this system can't do is told with the reason.
#[derive(Args, Debug)]
#[command(after_help = examples::BENCH_SYNC)]
pub(crate) struct BenchSyncArgs {
    /// Which ways: growing, overwrite, fallocate, fallocate-zero-range, keep-size, write-zeroes,
    /// fdatasync, o-sync, o-dsync, rwf-dsync, o-direct, o-direct-dsync, io-uring-fdatasync,
    /// mmap-msync, sync-file-range, one-write, one-sync [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) cases: Vec<SyncWay>,
    /// How much is written [default: 5MiB]
    #[arg(long, value_name = "BYTES", value_parser = values::bytes)]
    pub(crate) bytes: Option<u64>,
    /// Write so much as well, in pieces with a single sync, as 10G
    #[arg(long, value_name = "BYTES", value_parser = values::bytes)]
    pub(crate) big: Option<u64>,
    /// How many bytes are synced at a time, as 4K,64K: multiples of 4096 [default: 4096]
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = values::bytes)]
    pub(crate) piece: Vec<u64>,
    /// How many threads write, each a share of the file [default: 1]
    #[arg(long, value_name = "COUNTS", value_delimiter = ',')]
    pub(crate) threads: Vec<u32>,
    /// How many rounds are counted [default: 5]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: Option<u32>,
    /// 1 MiB and two rounds, as far as nothing else is asked for
    #[arg(long)]
    pub(crate) quick: bool,
    #[command(flatten)]
    pub(crate) place: BenchPlaceArgs,
    #[command(flatten)]
    pub(crate) output: BenchOutputArgs,
}
