//! The command line of `vellum-stress`: words turned into values, nothing acted on.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use clap::Parser;
use vellum::{CommitPath, Compression, Fill, Layout, Preallocate};
use vellum_command::values::{self, bytes};

const EXAMPLES: &str = "\
Exit codes:
  0  every record appended, or every record found good
  1  failed, or something is wrong
  2  usage: the command line is wrong, or contradicts the log

Examples:
  vellum-stress --records 100000 --threads 4 --processes 2 stress.log > acknowledged
  vellum-stress --layout text --bytes 20-5000 --commit 16 --segment-bytes 64KiB stress.log
  vellum-stress --segment-bytes 64KiB --trim-every 1000 stress.log
  vellum-stress --layout text --rotate-bytes 16KiB --retain-files 9 --compress=yes stress.log
  vellum-stress --check stress.log    # after a crash: prints the numbers that are there
  vellum-stress --check --torn stress.log    # the same of a text log after a power cut";

/// Append numbered records and acknowledge them, or check what a crash left of them
///
/// A crash test starts this first, keeps what it prints, and then cuts the power, fails the disk or
/// kills processes. Record after record is appended, to a new log or to one that already holds such
/// records. As soon as records are durable, `ACK n` or `ACK a-b` is printed, each line by one
/// write(2). `DROP a-b` is printed before records are trimmed away: those may be gone afterwards.
/// The first error ends the run with one line, and nothing is acknowledged after it.
///
/// Afterwards, --check recovers the log and verifies every byte of every record. It prints the
/// numbers found, as `n` or `a-b`, and a line `BAD ...` for each thing that is wrong. Then it
/// appends a record of its own, commits it, opens the log anew and requires the same once more. A
/// log that is not there holds nothing, which is good.
///
/// Records are numbered from 0. With W writers, processes times threads, number n is a record of
/// writer n mod W. The records of each writer have to be unbroken, from its first record on or,
/// after a trim, from some record on.
///
/// With --retain-files, a writer announces before each record, as `DROP`, the records that the next
/// ones may remove. It keeps as many files as there are writers, and two, beyond its promise.
///
/// A new framed log is filled the staged way, a text log mapped, unless --fill says otherwise.
#[derive(Debug, Parser)]
#[command(name = "vellum-stress", after_help = EXAMPLES, max_term_width = 100)]
pub(super) struct Args {
    /// The log's directory
    pub(super) log: PathBuf,
    /// Verify what an earlier run left, instead of appending
    #[arg(long, conflicts_with_all = [
        "records", "threads", "processes", "bytes", "commit", "batch", "trim_every",
        "checkpoint_every", "prepare_every", "commit_path", "cursor", "seed", "layout", "segment_bytes", "preallocate",
        "fill", "envelope", "rotate_bytes", "retain_files", "compress", "follow", "sync",
    ])]
    pub(super) check: bool,
    /// With --check, of a text log after a power cut: accept lines that are there in part, or not
    /// at all, and don't count what follows them, because it can't have been committed
    #[arg(long, requires = "check")]
    pub(super) torn: bool,
    /// How many records all writers append together
    #[arg(long, value_name = "COUNT", default_value = "1000")]
    pub(super) records: u64,
    /// How many threads append in each process
    #[arg(long, value_name = "COUNT", default_value = "1")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(super) threads: u32,
    /// How many processes append
    #[arg(long, value_name = "COUNT", default_value = "1")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(super) processes: u32,
    /// How many bytes a record has, from the shortest to the longest; none is shorter than its
    /// name and a checksum, about 20 bytes
    #[arg(long, value_name = "MIN-MAX", default_value = "1-1000", value_parser = byte_range)]
    pub(super) bytes: ByteRange,
    /// After which records a writer commits: `every` one, each COUNTth and the last one,
    /// or `none`, which acknowledges nothing
    #[arg(long, value_name = "every|COUNT|none", default_value = "every")]
    #[arg(value_parser = commit_every)]
    pub(super) commit: CommitEvery,
    /// How many records a writer appends at once, all or none of which are there afterwards
    #[arg(long, value_name = "COUNT", default_value = "1", conflicts_with = "retain_files")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) batch: u64,
    /// After so many of its records, the first writer sets the checkpoint of a framed log
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) checkpoint_every: Option<u64>,
    /// After so many of its records, the first writer makes a segment ready
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) prepare_every: Option<u64>,
    /// After so many of its records, the first writer trims: the records that were committed at its
    /// last trim go
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) trim_every: Option<u64>,
    /// Before it trims, commit a cursor that holds records to the position, and trim to the end:
    /// the cursor has to stop that
    #[arg(long, requires = "trim_every")]
    pub(super) cursor: bool,
    /// Acknowledge a record when a durable reader beside the writers has returned it, instead of
    /// when its writer has committed it
    #[arg(long)]
    pub(super) follow: bool,
    /// Commit with `sync` instead of by position. The first thread of each process stays between
    /// reserving a record and publishing it until the others have begun to sync
    #[arg(long, conflicts_with_all = ["follow", "batch"])]
    pub(super) sync: bool,
    /// How commit groups get to the device, as fdatasync/4096/2: the write, the block, the lanes;
    /// of several, separated by commas, the processes take turns
    #[arg(long, value_name = "PATH", value_delimiter = ',')]
    pub(super) commit_path: Vec<CommitPath>,
    /// Decides lengths and bytes of the records
    #[arg(long, value_name = "NUMBER", default_value = "0")]
    pub(super) seed: u64,
    #[command(flatten)]
    pub(super) shape: ShapeArgs,
    /// Have a text log rotate when a file would get longer than this
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub(super) rotate_bytes: Option<u64>,
    /// Have a text log keep so many files beside the current one: at least two more than there
    /// are writers
    #[arg(long, value_name = "COUNT", value_parser = values::files)]
    pub(super) retain_files: Option<u64>,
    /// Have a text log compress its closed files: with zstd where nothing else is said
    #[arg(long, value_name = "zstd|gzip|no", value_parser = values::compression())]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "zstd")]
    pub(super) compress: Option<Compression>,
    /// In one of several processes: which of them this is, from 0
    #[arg(long, hide = true, requires = "next")]
    pub(super) process: Option<u32>,
    /// In one of several processes: the next number of each writer of all processes
    #[arg(long, hide = true, value_delimiter = ',')]
    pub(super) next: Vec<u64>,
}

/// What shapes the files of a log; `None` leaves it to the log.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Options for a new log")]
pub(super) struct ShapeArgs {
    /// How records lie in the files: in frames with checksums, or as plain text [new log: framed]
    #[arg(long, value_parser = values::layout())]
    pub(super) layout: Option<Layout>,
    /// Bytes of log in each segment file, as 4096, 64KiB or 1GiB [new log: 64MiB]
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub(super) segment_bytes: Option<u64>,
    /// How file space is made ready ahead of need [new log: auto]
    #[arg(long, value_name = "HOW", value_parser = values::preallocate())]
    pub(super) preallocate: Option<Preallocate>,
    /// How records get into the files [new log: mapped where that is safe]
    #[arg(long, value_name = "HOW", value_parser = values::fill())]
    pub(super) fill: Option<Fill>,
    /// Give records of a framed log envelopes, with time and writer; --check looks at them
    #[arg(long)]
    pub(super) envelope: bool,
}

impl Args {
    /// Reads the command line of this process; a wrong one ends it.
    pub(super) fn read() -> Args {
        Args::parse()
    }

    /// How this process commits, if that is said.
    pub(super) fn commit_path(&self) -> Option<CommitPath> {
        let paths = &self.commit_path;
        let turn = self.process.unwrap_or(0) as usize % paths.len().max(1);
        paths.get(turn).copied()
    }

    /// How many writers there are in all.
    pub(super) fn writers(&self) -> u64 {
        u64::from(self.processes) * u64::from(self.threads)
    }
}

/// After which of its records a writer commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommitEvery {
    /// After each that completes so many, 1 or more, and after the last.
    Records(u64),
    /// Never.
    Never,
}

/// How many bytes a record may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ByteRange(pub(super) RangeInclusive<u64>);

fn commit_every(text: &str) -> Result<CommitEvery, String> {
    match text {
        "every" => Ok(CommitEvery::Records(1)),
        "none" => Ok(CommitEvery::Never),
        _ => match text.parse() {
            Ok(count @ 1..) => Ok(CommitEvery::Records(count)),
            _ => Err("write `every`, `none`, or a number of records from 1 on".into()),
        },
    }
}

/// Reads `256`, `100-1000` or `1KiB-64KiB`.
fn byte_range(text: &str) -> Result<ByteRange, String> {
    let (shortest, longest) = text.split_once('-').unwrap_or((text, text));
    let range = bytes(shortest)?..=bytes(longest)?;
    if range.is_empty() {
        return Err("the shortest is longer than the longest; write it as 100-1000".into());
    }
    if *range.end() > u64::from(u32::MAX) {
        return Err(format!("a record has no more than {} bytes", u32::MAX));
    }
    Ok(ByteRange(range))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_bytes_are_one_number_or_two_in_order() {
        assert_eq!(byte_range("256"), Ok(ByteRange(256..=256)));
        assert_eq!(byte_range("100-1KiB"), Ok(ByteRange(100..=1024)));
        for text in ["", "-", "9-", "-9", "1000-100", "1-4GiB", "a-b", "1-2-3", "1XB"] {
            assert!(byte_range(text).is_err(), "{text}");
        }
    }

    #[test]
    fn commits_come_with_every_record_or_some_or_none() {
        assert_eq!(commit_every("every"), Ok(CommitEvery::Records(1)));
        assert_eq!(commit_every("16"), Ok(CommitEvery::Records(16)));
        assert_eq!(commit_every("none"), Ok(CommitEvery::Never));
        for text in ["0", "-1", "all", ""] {
            assert!(commit_every(text).is_err(), "{text}");
        }
    }

    #[test]
    fn compress_is_a_flag_that_may_have_a_value() {
        let compress = |line: &str| {
            let line = ["vellum-stress"].into_iter().chain(line.split(' '));
            let args = Args::parse_from(line);
            assert_eq!(args.log, PathBuf::from("x"));
            args.compress
        };
        assert_eq!(compress("--compress x"), Some(Compression::Zstd));
        assert_eq!(compress("--compress=yes x"), Some(Compression::Zstd));
        assert_eq!(compress("--compress=gzip x"), Some(Compression::Gzip));
        assert_eq!(compress("--compress=no x"), Some(Compression::None));
        assert_eq!(compress("x"), None);
    }
}
