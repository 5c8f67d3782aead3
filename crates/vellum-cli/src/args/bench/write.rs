//! `vellum bench write`.

use clap::Args;
use vellum_bench::write::{State, Table};

use super::{BenchOutputArgs, BenchPlaceArgs};
use crate::args::{examples, values};

/// Every way to make a file and to fill it: how fast, with and without a sync?
///
/// Four tables: `create`, what it costs to make a file of a size; `mmap`, stores into a mapped
/// file; `simple`, one thread, by the call and the size of its pieces; `parallel`, several threads
/// and one file, or one each. All cases of a table take turns in rounds, the first of which is not
/// counted; after each, the file is read back and compared. What this system can't do is told with
/// the reason.
///
/// The full run takes half an hour to an hour on each filesystem; --quick takes less than half a
/// minute. Files are made smaller where disk or memory would not hold them, and a warning says so.
#[derive(Args, Debug)]
#[command(after_help = examples::BENCH_WRITE)]
pub(crate) struct BenchWriteArgs {
    /// Which tables: create, mmap, simple, parallel [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) tables: Vec<Table>,
    /// How long the file is, or all files of a case together [default: 1GiB]
    #[arg(long, value_name = "BYTES", value_parser = values::bytes)]
    pub(crate) bytes: Option<u64>,
    /// How long the file is, for the table `create`, as 1M,64M,1G: a table for each [default: as
    /// --bytes]
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = values::bytes)]
    pub(crate) sizes: Vec<u64>,
    /// How much is written at a time, for the table `simple`
    /// [default: 1K,4K,8K,16K,64K,1M,16M,64M,512M,1G]
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = values::bytes)]
    pub(crate) chunks: Vec<u64>,
    /// How much a thread writes at a time, for the table `parallel` [default: 1MiB]
    #[arg(long, value_name = "BYTES", value_parser = values::bytes)]
    pub(crate) piece: Option<u64>,
    /// How many threads write [default: 1,2,4,8,16]
    #[arg(long, value_name = "COUNTS", value_delimiter = ',')]
    pub(crate) threads: Vec<u32>,
    /// What the file is before: emptied, sparse, preallocated, written [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) states: Vec<State>,
    /// Which ways, by their names in the report, as `files,vellum-parallel` [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) ways: Vec<String>,
    /// How many rounds are counted [default: 3]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: Option<u32>,
    /// 64 MiB, two rounds, chunks of 4 KiB and 1 MiB, one and two threads, files emptied and
    /// preallocated, as far as nothing else is asked for
    #[arg(long)]
    pub(crate) quick: bool,
    #[command(flatten)]
    pub(crate) place: BenchPlaceArgs,
    #[command(flatten)]
    pub(crate) output: BenchOutputArgs,
}
