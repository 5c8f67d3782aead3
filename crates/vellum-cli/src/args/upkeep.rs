//! Commands that look after a log.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};
use vellum::{CommitPath, Lsn};

use super::values::Position;
use super::{ColorArgs, examples, values};

/// Drop the oldest part of a log
///
/// Whole segment files before the position are removed; records before it in the file that stays
/// are no longer shown. A log that commits keeps some of the files for its next records. On a
/// terminal it asks first.
#[derive(Args, Debug)]
#[command(after_help = examples::TRIM)]
pub(crate) struct TrimArgs {
    /// The log's directory
    #[arg(value_hint = ValueHint::AnyPath)]
    pub(crate) log: PathBuf,
    /// The oldest position to keep: that of a record, or the published end
    #[arg(long, value_name = "LSN", value_parser = values::lsn)]
    pub(crate) before: Lsn,
    /// Segments that may wait for new records behind this; with 0 all that goes is given back
    #[arg(long, value_name = "COUNT")]
    pub(crate) spare_segments_max: Option<u64>,
    /// Do not ask; without a terminal there is no question
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Print no report of the changes
    #[arg(short, long, conflicts_with = "json")]
    pub(crate) quiet: bool,
    /// Print what was done as one object of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// List the cursors of a log; make, move or remove one
///
/// A cursor is a named position that survives processes and power cuts: its reader has finished
/// everything before it. `vellum tail --cursor` reads from it and moves it. With --hold it keeps
/// the records from there on: nothing removes them before the cursor has moved.
///
/// Without NAME all cursors are listed. With NAME alone that one is shown. A cursor that another
/// process owns cannot be changed. With --json, a list of objects {"name", "lsn", "lag_bytes",
/// "lag_records", "lag_seconds", "holds", "max_held_bytes", "max_held_age_seconds", "owned",
/// "owner", "committed_at_seconds", "overrun"}.
#[derive(Args, Debug)]
#[command(after_help = examples::CURSOR)]
pub(crate) struct CursorArgs {
    /// The log's directory
    #[arg(value_hint = ValueHint::AnyPath)]
    pub(crate) log: PathBuf,
    /// The cursor: 1 to 64 letters, digits, '.', '_' and '-'
    pub(crate) name: Option<String>,
    /// Move the cursor there, forward or back; make it if there is none. A position is an LSN,
    /// a stored position (`position` in `--json`), `begin` for the oldest record, or `end`
    #[arg(long, value_name = "POSITION", value_parser = values::position, requires = "name")]
    pub(crate) set: Option<Position>,
    /// Keep the records from the cursor on from being removed; make it if there is none
    #[arg(long, requires = "name")]
    pub(crate) hold: bool,
    /// Keep no more than so many bytes, as 100MiB or 1GiB [default: all]
    #[arg(long, value_name = "BYTES", value_parser = values::bytes, requires = "hold")]
    pub(crate) max_held: Option<u64>,
    /// Keep nothing older than this, as 12h or 7d [default: any age]
    #[arg(long, value_name = "SPAN", value_parser = values::span, requires = "hold")]
    pub(crate) max_held_age: Option<Duration>,
    /// Keep nothing any more
    #[arg(long, requires = "name", conflicts_with = "hold")]
    pub(crate) no_hold: bool,
    /// Remove the cursor
    #[arg(long, requires = "name", conflicts_with_all = ["set", "hold", "no_hold"])]
    pub(crate) delete: bool,
    #[command(flatten)]
    pub(crate) color: ColorArgs,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Have a text log continue in a new file
///
/// The next record goes there, before the log's policy would say so; no process has to know, and
/// nothing is lost. Where nothing was written since the last time, nothing happens.
#[derive(Args, Debug)]
#[command(after_help = examples::ROTATE)]
pub(crate) struct RotateArgs {
    /// The log's directory
    #[arg(value_hint = ValueHint::AnyPath)]
    pub(crate) log: PathBuf,
}

/// Make segments ready ahead of need, so that no commit has to wait for that
///
/// They are allocated and synced, beyond the segment that is written now, as the log was created
/// to do it. Segments that are ready already count. What would leave less than a tenth of the disk
/// free is refused, and what fails gives back what it has made, unless others have the log open.
///
/// Of a log that stages its records, the ways to bring a commit to the device are timed too: one
/// write with O_DSYNC, or a write and an fdatasync; the block; one commit in flight or two. The
/// fastest is stored beside the log for this device, and every process follows it from its next
/// opening on. That takes a second or two and 4 MiB, once for each device.
#[derive(Args, Debug)]
#[command(after_help = examples::PREPARE)]
pub(crate) struct PrepareArgs {
    /// The log's directory
    #[arg(value_hint = ValueHint::AnyPath)]
    pub(crate) log: PathBuf,
    /// How many segments are to be ready
    #[arg(long, value_name = "COUNT", default_value = "1")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) segments: u64,
    /// Make them even where that leaves less than a tenth of the disk free
    #[arg(long)]
    pub(crate) force: bool,
    /// Whether to time the ways to commit: `auto` does it where that was not done on this device
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub(crate) measure: MeasureWhen,
    /// Store this way to commit instead: write, block and lanes, as fdatasync/4096/2. A block below
    /// the device's physical sector may cost durable records when the power is cut
    #[arg(long, value_name = "PATH", conflicts_with = "measure")]
    pub(crate) commit_path: Option<CommitPath>,
    /// Give segments back that are ready; no other process may have the log open
    #[arg(long, conflicts_with_all = ["segments", "force", "measure", "commit_path"])]
    pub(crate) release: bool,
    /// Print no report of the changes
    #[arg(short, long, conflicts_with = "json")]
    pub(crate) quiet: bool,
    /// Print what was done as one object of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// When `vellum prepare` times the ways to commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MeasureWhen {
    Auto,
    Always,
    Never,
}

/// Print or set the position from which the log's user recovers
///
/// It is kept with the log and means nothing to it: a program that applies records elsewhere
/// stores here how far it has come. A record starts at the position, or the log ends there. 0 is
/// printed where there is none.
#[derive(Args, Debug)]
#[command(after_help = examples::CHECKPOINT)]
pub(crate) struct CheckpointArgs {
    /// The log's directory
    #[arg(value_hint = ValueHint::AnyPath)]
    pub(crate) log: PathBuf,
    /// The new checkpoint; without it, the stored one is printed
    #[arg(value_name = "LSN", value_parser = values::lsn)]
    pub(crate) lsn: Option<Lsn>,
    /// Print no report of the changes
    #[arg(short, long, conflicts_with = "json", requires = "lsn")]
    pub(crate) quiet: bool,
    /// Print it as one object of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Drop the newest part of a log: a record and all behind it
///
/// No other process may have the log open. Dropped records are gone: --dry-run lists them. On a
/// terminal it asks first.
#[derive(Args, Debug)]
#[command(after_help = examples::TRUNCATE)]
pub(crate) struct TruncateArgs {
    /// The log's directory
    #[arg(value_hint = ValueHint::AnyPath)]
    pub(crate) log: PathBuf,
    /// The position of the first record that goes
    #[arg(value_name = "LSN", value_parser = values::lsn)]
    pub(crate) from: Lsn,
    /// Count the records that would go, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask; without a terminal there is no question
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Print no report of the changes
    #[arg(short, long, conflicts_with = "json")]
    pub(crate) quiet: bool,
    /// Print what was done as one object of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Save what is readable of a damaged log into a new one
///
/// The damaged log stays as it is. Prints a line for each thing that could not be read,
/// FILE:OFFSET: lsn LSN: REASON, and exits with 3 if there was any. On a terminal it asks before it
/// saves into a directory that has files.
#[derive(Args, Debug)]
#[command(after_help = examples::REPAIR)]
pub(crate) struct RepairArgs {
    /// The directory of the damaged log
    #[arg(value_name = "FROM", value_hint = ValueHint::AnyPath)]
    pub(crate) source: PathBuf,
    /// The path of the new log, which does not exist yet; it is a link if FROM is one
    #[arg(value_name = "TO", value_hint = ValueHint::DirPath)]
    pub(crate) target: PathBuf,
    /// Do not ask; without a terminal there is no question
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Print no report of saved or unreadable parts: the exit code tells
    #[arg(short, long, conflicts_with = "json")]
    pub(crate) quiet: bool,
    /// Print one object of JSON
    #[arg(long)]
    pub(crate) json: bool,
}
