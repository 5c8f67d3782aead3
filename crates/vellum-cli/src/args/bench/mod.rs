//! `vellum bench`: a subcommand for each suite, a file for each.

mod all;
mod compare;
mod publish;
mod report;
mod suite;

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use vellum_bench::{MkfsOptions, ScratchKind};

pub(crate) use all::BenchAllArgs;
pub(crate) use compare::BenchCompareArgs;
pub(crate) use publish::{BenchPublishArgs, MEASUREMENTS, Measurement};
pub(crate) use report::BenchReportArgs;
pub(crate) use suite::BenchSuiteArgs;

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
    All(BenchAllArgs),
    #[command(flatten)]
    Suite(BenchSuiteArgs),
    Compare(BenchCompareArgs),
    Report(BenchReportArgs),
    Publish(BenchPublishArgs),
}

/// Where a suite runs.
#[derive(Args, Debug)]
pub(crate) struct BenchPlaceArgs {
    /// Where: a directory on the filesystem of interest [default: ., or none with --fs]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) dir: Option<PathBuf>,
    /// Filesystems to make for the run, on loop devices in memory: ext4, xfs, btrfs, tmpfs,
    /// raid0-ext4, btrfs-raid0; for root only
    #[arg(long, value_name = "KINDS", value_delimiter = ',')]
    pub(crate) fs: Vec<ScratchKind>,
    /// With --fs: options for the program that makes a filesystem, as 'xfs=-l size=64m'; may be
    /// repeated for other kinds
    #[arg(long, value_name = "KIND=OPTIONS", requires = "fs")]
    pub(crate) mkfs_options: Vec<MkfsOptions>,
    /// With --fs: fill each filesystem so far before the run, as 95%, with its free space in many
    /// pieces
    #[arg(long, value_name = "PERCENT", requires = "fs", value_parser = values::percent)]
    pub(crate) fill: Option<u8>,
}

/// Where a result goes, beside the table.
#[derive(Args, Debug)]
pub(crate) struct BenchOutputArgs {
    /// Write the result as JSON to a file; `-` prints it instead of the table
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) json: Option<PathBuf>,
    /// Write the result as Markdown to a file, or print it with `-`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) markdown: Option<PathBuf>,
    /// Write the result as one HTML file with charts, or print it with `-`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) html: Option<PathBuf>,
}
