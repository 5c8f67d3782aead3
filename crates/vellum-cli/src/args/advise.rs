//! `vellum advise`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use vellum_bench::advise::Purpose;

use super::{BenchOutputArgs, examples};

/// Find out how to write files in a directory
///
/// Looks at filesystem, mount, devices and kernel, then measures for about a minute the ways to
/// write there that matter: for a log that commits, for a log that processes share, and for one
/// large file. All ways take turns in rounds, the first of which is not counted, and all that was
/// written is read back and compared.
///
/// Prints one recommendation for each, with the ratio that speaks for it and in how many rounds it
/// was faster. The default is kept unless something is faster in nearly every round, and by 5 % or
/// more. Then come the traps of this place, with the remedies, and all that was measured.
///
/// Takes no more than a tenth of the free space, and at most 1 GiB, in a directory that is removed
/// in the end, however the run ends. Without --write, the advice is printed instead.
#[derive(Args, Debug)]
#[command(after_help = examples::ADVISE)]
pub(crate) struct AdviseArgs {
    /// The directory in which files are to be written
    #[arg(value_hint = ValueHint::DirPath)]
    pub(crate) dir: PathBuf,
    /// About how long to measure [default: 60]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub(crate) seconds: Option<u32>,
    /// Take ten seconds: fewer rounds, and fewer ways to write a large file
    #[arg(long, conflicts_with = "seconds")]
    pub(crate) quick: bool,
    /// What for: wal, log, file [default: all]
    #[arg(long = "for", value_name = "NAMES", value_delimiter = ',')]
    pub(crate) purposes: Vec<Purpose>,
    /// Store in DIR, as vellum.toml, choices that are clearly better than the defaults; logs that
    /// are created below follow it
    #[arg(long)]
    pub(crate) write: bool,
    /// Replace a vellum.toml that was not written by this command
    #[arg(long, requires = "write")]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) output: BenchOutputArgs,
}
