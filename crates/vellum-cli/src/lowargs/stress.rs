//! `vellum stress`: a workload for crash tests.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::{PolicyArgs, ShapeArgs, examples, values};

/// Append numbered records and acknowledge them, or check what a crash left of them
///
/// Whoever cuts the power, fails the disk or kills processes starts this first, and keeps what it
/// prints. Record after record is appended, to a new log or one that holds such records already
/// and is gone on with; as soon as records are durable, `ACK n`
/// or `ACK a-b` is printed, each line by one write(2). `DROP a-b` is printed before records are
/// trimmed away: those may be gone afterwards. An error ends everything with one line, and nothing
/// is acknowledged after it.
///
/// Afterwards, --check recovers the log and verifies every record: its bytes can be told from what
/// it is called. Printed are the numbers found, as `n` or `a-b`, and a line `BAD ...` for each
/// thing that is wrong. Then it appends a record of its own, commits it, opens the log anew and
/// requires the same once more. A log that is not there holds nothing, which is good.
///
/// Records are numbered from 0. With W writers, processes times threads, number n is a record of
/// writer n mod W; what is found of each writer has to be unbroken, from its first record on or,
/// after a trim, from some record on.
///
/// With --retain-files, what may be removed by the next records is dropped too, before each record
/// of a writer. It keeps as many files as there are writers, and two, beyond what it promises.
///
/// A new framed log is filled the staged way, a text log mapped, unless --fill says otherwise.
#[derive(Args, Debug)]
#[command(after_help = examples::STRESS)]
pub(crate) struct StressArgs {
    /// The log's directory
    #[arg(value_hint = ValueHint::DirPath)]
    pub(crate) log: PathBuf,
    /// Verify what an earlier run left, instead of appending
    #[arg(long, conflicts_with_all = [
        "records", "threads", "processes", "bytes", "commit", "batch", "trim_every",
        "checkpoint_every", "prepare_every", "seed", "layout", "segment_bytes", "preallocate", "fill", "rotate_bytes", "retain_files", "compress",
    ])]
    pub(crate) check: bool,
    /// With --check, of a text log after a power cut: put up with lines that are there in part, or
    /// not at all, and don't count what follows them, because it can't have been committed
    #[arg(long, requires = "check")]
    pub(crate) torn: bool,
    /// How many records all writers append together
    #[arg(long, value_name = "COUNT", default_value = "1000")]
    pub(crate) records: u64,
    /// How many threads append in each process
    #[arg(long, value_name = "COUNT", default_value = "1")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) threads: u32,
    /// How many processes append
    #[arg(long, value_name = "COUNT", default_value = "1")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) processes: u32,
    /// How many bytes a record has, from the shortest to the longest; none is shorter than its
    /// name and a checksum, about 20 bytes
    #[arg(long, value_name = "MIN-MAX", default_value = "1-1000", value_parser = byte_range)]
    pub(crate) bytes: ByteRange,
    /// After which records a writer commits: `every` one, each COUNTth and the last one,
    /// or `none`, which acknowledges nothing
    #[arg(long, value_name = "every|COUNT|none", default_value = "every")]
    #[arg(value_parser = commit_every)]
    pub(crate) commit: CommitEvery,
    /// How many records a writer appends at once, all or none of which are there afterwards
    #[arg(long, value_name = "COUNT", default_value = "1", conflicts_with = "retain_files")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) batch: u64,
    /// After so many of its records, the first writer sets the checkpoint of a framed log
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) checkpoint_every: Option<u64>,
    /// After so many of its records, the first writer makes a segment ready
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) prepare_every: Option<u64>,
    /// After so many of its records, the first writer trims: what was committed when it did so
    /// before goes
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) trim_every: Option<u64>,
    /// Decides lengths and bytes of the records
    #[arg(long, value_name = "NUMBER", default_value = "0")]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) shape: ShapeArgs,
    /// Have a text log go on in a new file when one would get longer than this
    #[arg(long, value_name = "BYTES", value_parser = values::bytes)]
    pub(crate) rotate_bytes: Option<u64>,
    /// Have a text log keep so many files beside the current one: at least two more than there
    /// are writers
    #[arg(long, value_name = "COUNT", value_parser = values::files)]
    pub(crate) retain_files: Option<u64>,
    /// Have a text log compress its closed files
    #[arg(long, value_name = "YES|NO", value_parser = values::yes_or_no())]
    #[arg(num_args = 0..=1, default_missing_value = "yes")]
    pub(crate) compress: Option<bool>,
}

impl StressArgs {
    /// What a text log is to do with its files.
    pub(crate) fn policy(&self) -> PolicyArgs {
        PolicyArgs {
            rotate_bytes: self.rotate_bytes,
            retain_files: self.retain_files,
            compress: self.compress,
            ..PolicyArgs::default()
        }
    }

    /// How many writers there are in all.
    pub(crate) fn writers(&self) -> u64 {
        u64::from(self.processes) * u64::from(self.threads)
    }
}

/// After which of its records a writer commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommitEvery {
    /// After each that completes so many, 1 or more, and after the last.
    Records(u64),
    /// Never.
    Never,
}

/// How many bytes a record may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ByteRange(pub(crate) RangeInclusive<u64>);

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
    let range = values::bytes(shortest)?..=values::bytes(longest)?;
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
        for text in ["", "-", "9-", "-9", "1000-100", "1-4GiB", "a-b", "1-2-3"] {
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
}
