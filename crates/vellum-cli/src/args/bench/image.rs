//! `vellum bench image`.

use std::time::Duration;

use clap::{Args, ValueEnum};
use vellum_bench::image::{ImageEngine, ImageState};

use super::{BenchOutputArgs, BenchPlaceArgs};
use crate::args::{examples, values};

/// Random writes into a disk image: what does it cost how its space was allocated?
///
/// Writes of 4 KiB, past the page cache, 32 at a time, into a file treated as QEMU treats a qcow2
/// image with preallocation off, metadata, falloc or full, or with a hint to XFS to allocate in
/// larger pieces. --states qcow2-... has QEMU make real qcow2 images, and writes them through its
/// NBD server. Shown are writes per second over the whole run, in its first second, first minute,
/// first tenth and last tenth, for rates change while a run goes on; latencies; in how many extents
/// the image lay in the end; and what making it took. Each case gets a new image in each round; the
/// first round is short and not counted. After each, every block is compared with what was written
/// there last.
///
/// The full run takes about fifteen minutes on each filesystem, --quick half of one.
#[derive(Args, Debug)]
#[command(after_help = examples::BENCH_IMAGE)]
pub(crate) struct BenchImageArgs {
    /// How the image was allocated: off, off-without-zero-range, metadata, falloc, full,
    /// extsize-64k, extsize-1m [default: all of these], and by QEMU (package qemu-utils):
    /// qcow2-off, qcow2-metadata, qcow2-falloc, qcow2-full, qemu-raw
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) states: Vec<ImageState>,
    /// Who carries the writes to the kernel: aio, io_uring, threads [default: all; io_uring with
    /// --quick]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) engines: Vec<ImageEngine>,
    /// How long an image is [default: 2GiB; 256MiB with --quick; less where there is no room]
    #[arg(long, value_name = "BYTES", value_parser = values::bytes)]
    pub(crate) bytes: Option<u64>,
    /// How long each case writes in a round [default: 10; 1 with --quick]
    #[arg(long, value_name = "SECONDS", value_parser = values::seconds)]
    pub(crate) seconds: Option<Duration>,
    /// How many writes are on their way at a time
    #[arg(long, value_name = "COUNT", default_value = "32")]
    pub(crate) depth: usize,
    /// How many rounds are counted [default: 3; 2 with --quick]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: Option<u32>,
    /// Short, small, and only with io_uring, as far as nothing else is asked for
    #[arg(long)]
    pub(crate) quick: bool,
    /// Have another program write the same, taking turns with us, in all states but the first two
    /// and QEMU's, which it does not know; what it wrote is not read back
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) check_with: Option<CheckWith>,
    #[command(flatten)]
    pub(crate) place: BenchPlaceArgs,
    #[command(flatten)]
    pub(crate) output: BenchOutputArgs,
}

/// Programs that can write the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckWith {
    /// fio, which must be installed
    Fio,
}
