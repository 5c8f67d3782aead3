//! Options of text logs: files that come and go, and their ends.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use clap::{Args, ValueHint};
use vellum::OnFull;
use vellum_command::records::Form;

use super::{examples, moment, values};

/// When a text log goes on in a new file, and which files it keeps; `None` leaves it to the log.
#[derive(Args, Debug)]
#[command(next_help_heading = "Options for the files of a text log, stored with it")]
pub(crate) struct PolicyArgs {
    /// Go on in a new file when one would get longer than this, as 10M; 0 for never
    #[arg(long, value_name = "BYTES", value_parser = values::bytes)]
    pub(crate) rotate_bytes: Option<u64>,
    /// Go on in a new file this often, as 1h or 1d, at the hour or at midnight UTC; 0 for never
    #[arg(long, value_name = "SPAN", value_parser = values::span)]
    pub(crate) rotate_every: Option<Duration>,
    /// Move those moments by this, as 22h for midnight two hours east of Greenwich
    #[arg(long, value_name = "SPAN", value_parser = values::span)]
    pub(crate) rotate_offset: Option<Duration>,
    /// Remove the oldest files when all take more than this together; 0 for never. For framed logs
    /// too: whole segments, and nothing from the checkpoint on
    #[arg(long, value_name = "BYTES", value_parser = values::bytes)]
    pub(crate) retain_bytes: Option<u64>,
    /// Remove files whose last record is older than this, as 30d; 0 for never. For framed logs too
    #[arg(long, value_name = "SPAN", value_parser = values::span)]
    pub(crate) retain_age: Option<Duration>,
    /// Keep so many files beside the current one, or all
    #[arg(long, value_name = "COUNT", value_parser = values::files)]
    pub(crate) retain_files: Option<u64>,
    /// Compress files with zstd when the log has gone on in a new one
    #[arg(long, value_name = "YES|NO", value_parser = values::yes_or_no())]
    #[arg(num_args = 0..=1, default_missing_value = "yes")]
    pub(crate) compress: Option<bool>,
    /// What to do with a record when the disk is full: stop, wait for space, or drop it and have
    /// the log say so later (this process alone, not stored) [default: error]
    #[arg(long, value_name = "WHAT", value_parser = values::on_full())]
    pub(crate) on_full: Option<OnFull>,
    /// Give up after waiting for so many milliseconds for a process that is stopped or does not get
    /// on, and name it (this process alone, not stored) [default: wait for as long as it lives]
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=86_400_000))]
    pub(crate) timeout: Option<u64>,
}

/// Print the newest records of a log, and new ones as they come
///
/// Needs no more than read permission and changes nothing. Like tail(1), for the log as a whole: it
/// goes on over the log's files, and never shows what is not written yet. Where files are removed
/// before they were printed, it says so and goes on with the oldest there is.
#[derive(Args, Debug)]
#[command(after_help = examples::TAIL)]
pub(crate) struct TailArgs {
    /// The log's directory
    #[arg(value_hint = ValueHint::DirPath)]
    pub(crate) log: PathBuf,
    /// How many records to begin with; in a text log, lines
    #[arg(short = 'n', long, value_name = "COUNT", default_value = "10")]
    pub(crate) lines: usize,
    /// Begin with the records that were appended at this time or later, as `vellum cat --since`
    #[arg(long, value_name = "TIME", value_parser = moment::moment)]
    #[arg(conflicts_with_all = ["lines", "cursor"])]
    pub(crate) since: Option<SystemTime>,
    /// At the end, wait for more, until killed
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Follow whatever log is there: wait for it to appear, and go on with one that is made anew at
    /// the same path, when nothing more comes from the one before
    #[arg(short = 'F', long)]
    pub(crate) retry: bool,
    /// Print records only after some process has committed them: they survive a power cut
    ///
    /// Where no process commits, nothing new is printed.
    #[arg(long)]
    pub(crate) durable: bool,
    #[command(flatten)]
    pub(crate) form: Form,
    /// Go on behind what is damaged or missing of a framed log, and say what it is, instead of
    /// stopping there; readers of text logs always do. The exit code is 3 either way
    #[arg(long)]
    pub(crate) skip_damage: bool,
    /// Print what is new since the cursor of this name, and move the cursor when standard output
    /// has taken it
    ///
    /// A new cursor starts at the oldest record. This process owns the cursor: a second one with
    /// the same name fails. It needs permission to write. What was printed and not committed when
    /// it was killed is printed again. Where records were removed in front of the cursor it says
    /// how much that was, goes on, and exits with 3.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["lines", "retry"])]
    pub(crate) cursor: Option<String>,
    /// Move the cursor when a position comes on standard input, one a line: everything before it is
    /// finished
    ///
    /// That is the "next_lsn" that --json or --positions prints with a record. The end of the input
    /// ends the command; it exits with 1 if something printed was not acknowledged.
    #[arg(long, requires = "cursor")]
    pub(crate) ack: bool,
    /// Print before each record the position behind it, and a tab
    #[arg(long, conflicts_with = "json", requires = "cursor")]
    pub(crate) positions: bool,
}
