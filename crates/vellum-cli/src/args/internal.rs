//! Processes that this program starts for itself. Kept apart so that neither help nor completions
//! know of them.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// The command lines.
#[derive(Parser)]
struct Internal {
    #[command(subcommand)]
    command: InternalCommand,
}

/// The tasks of such a process.
#[derive(Debug, Subcommand)]
pub(crate) enum InternalCommand {
    DemoWriter(DemoWriterArgs),
    Keeper,
}

/// A writer process of the demo.
#[derive(Args, Debug)]
pub(crate) struct DemoWriterArgs {
    /// The log, which exists.
    pub(crate) log: PathBuf,
    /// Which writer this is.
    #[arg(long)]
    pub(crate) writer: u32,
    /// How many records to append.
    #[arg(long)]
    pub(crate) records: u64,
    /// Stop in the middle of the record after so many.
    #[arg(long)]
    pub(crate) stop_after: Option<u64>,
}

/// Reads the command line of such a process.
pub(super) fn parse() -> InternalCommand {
    Internal::parse_from(std::env::args_os().skip(1)).command
}
