//! `vellum bench`: a subcommand for each suite.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use vellum_bench::sync::SyncWay;
use vellum_bench::{ScratchKind, Setting, WayName};

use super::{examples, values};

/// Measure, with every byte verified and the conditions told
#[derive(Args, Debug)]
#[command(after_help = examples::BENCH)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    pub(crate) suite: BenchSuite,
}

/// What to measure.
#[derive(Debug, Subcommand)]
pub(crate) enum BenchSuite {
    Append(BenchAppendArgs),
    Commit(BenchCommitArgs),
    Sync(BenchSyncArgs),
}

/// Many processes append to one log: what does a record cost?
///
/// Each way of appending runs once in each round, one after the other; the first round is not
/// counted. After each, every record is looked for: one that is lost, torn or doubled fails the
/// run. Shown are median, minimum and maximum of the rounds, and how many times as fast as
/// write(2) with O_APPEND in the same round.
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
    /// How many bytes a record has
    #[arg(long, value_name = "COUNTS", value_delimiter = ',')]
    pub(crate) bytes: Vec<usize>,
    /// Which ways of appending: vellum-framed, vellum-text, write, writev, stdio, direct, aio,
    /// io_uring [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) ways: Vec<WayName>,
    /// How many rounds are counted [default: 5]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: Option<u32>,
    /// Where: a directory on the filesystem of interest
    #[arg(long, value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub(crate) dir: PathBuf,
    /// Write the result as JSON to a file; `-` prints it instead of the table
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) json: Option<PathBuf>,
    /// A fifth of the records, two rounds, and without the slow ways direct, aio and io_uring,
    /// as far as nothing else is asked for
    #[arg(long)]
    pub(crate) quick: bool,
}

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
}

/// 5 MiB in pieces of 4 KiB, each synced: what does the state of the file cost?
///
/// A file that grows, one that is written with zeros first, one that is allocated in different
/// ways; several ways to sync; and all at once with a single sync. All take turns in rounds, the
/// first of which is not counted; after each, the file is read back and compared. Times are compared
/// with the file that grows, in the same round: below 1 is faster. What this system can't do is
/// told with the reason.
#[derive(Args, Debug)]
#[command(after_help = examples::BENCH_SYNC)]
pub(crate) struct BenchSyncArgs {
    /// Which ways: growing, overwrite, fallocate, fallocate-zero-range, keep-size, write-zeroes,
    /// o-dsync, o-direct, rwf-dsync, mmap-msync, one-write, one-sync [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) cases: Vec<SyncWay>,
    /// How much is written
    #[arg(long, value_name = "BYTES", default_value = "5MiB", value_parser = values::bytes)]
    pub(crate) bytes: u64,
    /// Write so much as well, in pieces with a single sync, as 10G
    #[arg(long, value_name = "BYTES", value_parser = values::bytes)]
    pub(crate) big: Option<u64>,
    /// How many rounds are counted
    #[arg(long, value_name = "COUNT", default_value = "5")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: u32,
    #[command(flatten)]
    pub(crate) place: BenchPlaceArgs,
}

/// Where a suite runs and where its result goes.
#[derive(Args, Debug)]
pub(crate) struct BenchPlaceArgs {
    /// Where: a directory on the filesystem of interest [default: ., or none with --fs]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) dir: Option<PathBuf>,
    /// Filesystems to make for the run, on loop devices in memory: ext4, xfs, btrfs, tmpfs; for
    /// root only
    #[arg(long, value_name = "KINDS", value_delimiter = ',')]
    pub(crate) fs: Vec<ScratchKind>,
    /// Write the result as JSON to a file; `-` prints it instead of the table
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) json: Option<PathBuf>,
}
