//! Options of commands that print records.

use std::path::PathBuf;
use std::time::SystemTime;

use clap::{Args, ValueHint};
use vellum::Lsn;
use vellum_command::moment::moment;
use vellum_command::records::Form;

use super::values::{Lines, Position};
use super::{examples, values};

/// Print the records of logs
///
/// Needs no more than read permission and changes nothing. Framed records are printed with a
/// newline each, lines of a text log as they are; with --raw nothing is added. Unfinished records
/// of a killed writer are skipped.
///
/// With --json, each line is an object {"lsn", "next_lsn", "payload"}, and "log" before that where
/// several logs are named; a payload that is not
/// UTF-8 comes as "payload_base64" instead. The newline that ends a text record is not part of
/// its payload there. A record with an envelope (`append --envelope`) has "time" too, as
/// 2026-11-23T12:00:00.000000000Z, and "writer", whose number behind the hyphen is the process.
///
/// --since and --until print records of a time: 1h (ago), 10:00, today, yesterday, 2026-11-23,
/// '2026-11-23 12:00', @1795434123 (seconds since 1970), now. That is local time, unless Z or an
/// offset follows, as in 2026-11-23T12:00:00Z. Of records with envelopes exactly those are printed,
/// as long as no clock was set back by more than a minute. So are lines of a text log that begin
/// with a time: 2026-11-23T12:00:00Z, 2026-11-23 12:00:00,123 or Nov 23 12:00:00. A line without
/// one goes with the line before it. Otherwise whole files are printed: those of a text log that
/// may have records of that time, by their names; those of a framed log if it removes records by
/// age.
#[derive(Args, Debug)]
#[command(after_help = examples::CAT)]
pub(crate) struct CatArgs {
    /// The directories of logs, which are printed one after the other
    #[arg(value_name = "LOG", required = true, value_hint = ValueHint::AnyPath)]
    pub(crate) logs: Vec<PathBuf>,
    /// Start with the record at this position, instead of the oldest: an LSN, a stored position
    /// (`position` of `cursor --json`), `begin` or `end`
    #[arg(long, value_name = "POSITION", value_parser = values::position)]
    #[arg(default_value = "begin", hide_default_value = true)]
    pub(crate) from: Position,
    /// Stop before the record at this position, or at the first one beyond it
    #[arg(long, value_name = "LSN", value_parser = values::lsn)]
    pub(crate) to: Option<Lsn>,
    /// Print records that were appended at this time or later
    #[arg(long, value_name = "TIME", value_parser = moment, conflicts_with = "from")]
    #[arg(allow_hyphen_values = true)]
    pub(crate) since: Option<SystemTime>,
    /// Print records that were appended before this time
    #[arg(long, value_name = "TIME", value_parser = moment, conflicts_with = "follow")]
    #[arg(allow_hyphen_values = true)]
    pub(crate) until: Option<SystemTime>,
    /// At the end, wait for more, until killed
    ///
    /// The log is checked 50 times a second. Nothing is written, and no writer waits for a
    /// follower.
    #[arg(short, long)]
    pub(crate) follow: bool,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
}

/// Print the newest records of a log, and new ones as they come
///
/// Needs no more than read permission and changes nothing. Like tail(1), for the log as a whole: it
/// continues over the log's files, and never shows unwritten records. Where files are removed
/// before they were printed, it reports that and continues with the oldest there is.
#[derive(Args, Debug)]
#[command(after_help = examples::TAIL)]
pub(crate) struct TailArgs {
    /// The log's directory
    #[arg(value_hint = ValueHint::AnyPath)]
    pub(crate) log: PathBuf,
    /// How many records to begin with; in a text log, lines. +8 begins with the eighth of the log,
    /// and -5 alone is -n 5
    #[arg(short = 'n', long, value_name = "COUNT", default_value = "10", value_parser = values::lines)]
    #[arg(allow_negative_numbers = true)]
    pub(crate) lines: Lines,
    /// Begin with the records that were appended at this time or later, as `vellum cat --since`
    #[arg(long, value_name = "TIME", value_parser = moment)]
    #[arg(allow_hyphen_values = true, conflicts_with_all = ["lines", "cursor"])]
    pub(crate) since: Option<SystemTime>,
    /// At the end, wait for more, until killed
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Follow any log at the path: wait for it to appear, and continue with one that is made anew
    /// there, when nothing more comes from the one before
    #[arg(short = 'F', long)]
    pub(crate) retry: bool,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    /// Print what is new since the cursor of this name, and move the cursor when standard output
    /// has taken it
    ///
    /// A new cursor starts at the oldest record. This process owns the cursor: a second one with
    /// the same name fails. It needs permission to write. Records that were printed and not
    /// committed when it was killed are printed again. Where records were removed in front of the
    /// cursor it reports how much that was, continues, and exits with 3.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["lines", "retry"])]
    pub(crate) cursor: Option<String>,
    /// Move the cursor when a position comes on standard input, one a line: everything before it is
    /// finished
    ///
    /// That is the "next_lsn" that --json or --positions prints with a record. The end of the input
    /// ends the command; it exits with 1 if something printed was not acknowledged.
    #[arg(long, requires = "cursor", conflicts_with = "raw")]
    pub(crate) ack: bool,
    /// Print before each record the position behind it, and a tab
    #[arg(long, conflicts_with_all = ["json", "raw"], requires = "cursor")]
    pub(crate) positions: bool,
}

/// Which records are printed, and in which form.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct ReadArgs {
    /// Print records only after some process has committed them: they survive a power cut
    ///
    /// Where no process commits, nothing new is printed.
    #[arg(long)]
    pub(crate) durable: bool,
    #[command(flatten)]
    pub(crate) form: Form,
    /// Continue behind damaged or missing parts of a framed log, and report them, instead of
    /// stopping there; readers of text logs always do. The exit code is 3 either way
    #[arg(long)]
    pub(crate) skip_damage: bool,
}
