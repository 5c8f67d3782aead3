//! `vellum bench publish`.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueHint};

use crate::args::examples;

/// Measure what the pages of the documentation quote
///
/// Each measurement is a program of its own and leaves a file. Finished ones wait in
/// target/measured, so a run that was stopped continues with the measurement in which it was
/// stopped. When all are there, they go to docs/results. Before each, it is waited until the
/// machine is idle, ten minutes at most.
///
/// All of it takes nine hours, 30 GiB on the disk, and root.
#[derive(Args, Debug)]
#[command(hide = true, after_help = examples::BENCH_PUBLISH)]
pub(crate) struct BenchPublishArgs {
    /// Measure only these, as append,sync; a name that is none lists all
    #[arg(long, value_name = "NAMES", value_delimiter = ',', num_args = 1.., hide_possible_values = true)]
    #[arg(value_parser = PossibleValuesParser::new(NAMES))]
    pub(crate) only: Vec<String>,
    /// Try the whole chain in ten minutes, into target/results-quick; its figures are worth nothing
    #[arg(long)]
    pub(crate) quick: bool,
    /// Print the command lines and how many minutes each takes about, and measure nothing
    #[arg(long)]
    pub(crate) list: bool,
    /// The directory of the programs, and of waiting results
    #[arg(long, value_name = "DIR", default_value = "target", value_hint = ValueHint::DirPath)]
    pub(crate) target: PathBuf,
    /// Where results go [default: docs/results]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) into: Option<PathBuf>,
}

/// A measurement for the pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Measurement {
    /// The name of its file.
    pub(crate) name: &'static str,
    /// The words behind `vellum bench`, or behind the program that measures other engines.
    pub(crate) words: &'static str,
    /// How many minutes it takes, about.
    pub(crate) minutes: u32,
}

macro_rules! measurements {
    ($($name:literal: $words:expr, $minutes:literal;)+) => {
        const NAMES: [&str; [$($name),+].len()] = [$($name),+];

        /// All of them, in the order in which they are measured.
        pub(crate) const MEASUREMENTS: &[Measurement] =
            &[$(Measurement { name: $name, words: $words, minutes: $minutes }),+];
    };
}

macro_rules! raw_images {
    () => {
        "off,off-without-zero-range,metadata,falloc,full,extsize-64k,extsize-1m"
    };
}

measurements! {
    "append": "append --rounds 5", 10;
    "append-sizes": "append --rounds 15 --ways vellum-framed,vellum-text,write --setting 4x40000x1024 \
        --setting 4x4000x16384 --setting 4x1500x60000 --setting 4x1500x65536 --setting 4x100x1048576", 1;
    "saturate": "append --saturate --ways vellum-framed,vellum-text,write --seconds 12 --rounds 5", 6;
    "latency": "latency --seconds 0.5 --rounds 3", 9;
    "commit": "commit", 8;
    "commit-memory": "commit --fs ext4,xfs,btrfs", 22;
    "sync": "sync --dir . --fs ext4,xfs,btrfs", 10;
    "big-sync": "sync --cases one-sync --big 10G --rounds 1", 1;
    "write": "write", 33;
    "write-tmpfs": "write --fs tmpfs", 22;
    "write-xfs": "write --fs xfs", 22;
    "write-btrfs": "write --fs btrfs", 57;
    "write-btrfs-raid0": "write --fs btrfs-raid0", 60;
    "write-striping": "write --fs btrfs,btrfs-raid0 --tables parallel --ways pwrite,files \
        --states emptied,preallocated --threads 1,2,4", 3;
    "image": concat!("image --states ", raw_images!(), ",qcow2-off,qcow2-metadata,qcow2-falloc,\
        qcow2-full,qemu-raw"), 37;
    "image-memory": concat!("image --fs ext4,xfs --states ", raw_images!()), 22;
    "image-long": "image --states metadata,falloc,qcow2-off,qcow2-falloc --engines io_uring \
        --seconds 120", 27;
    "image-filled": "image --fs ext4,xfs --fill 95% --states off,metadata,falloc --engines io_uring", 10;
    "read": "read", 2;
    "scale": "scale", 2;
    "peers-append": "processes --rounds 5", 10;
    "peers-latency": "latency --reader spinning --rounds 5", 10;
    "peers-commit": "--bytes 256,4096,1048576 --threads 1,4,16 --prepared yes --rounds 5", 10;
    "peers-loggers": "append --rounds 5", 5;
}
