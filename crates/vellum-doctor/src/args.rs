//! The command line of `doctor`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueHint};
use vellum_bench::Cause;
use vellum_command::values;

const EXAMPLES: &str = "\
Exit codes:
  0  good for every program; all that was promised is there
  1  failed
  2  usage
  5  marginal for one of them; of promises nothing can be concluded
  6  not good enough for one of them; a promise was broken
  7  the machine was too busy to tell, or the figures too few, for one of them

Examples:
  vellum doctor --for etcd /var/lib/etcd
  vellum doctor --for postgres,kafka --html report.html /data
  vellum doctor --rate 5000/s --bytes 300 --p99 10ms /data
  vellum doctor --quick --for sqlite --accept memory /dev/shm
  vellum doctor --minutes 10 --for etcd --json disk.json /data
  vellum doctor compare before.json after.json
  vellum doctor --iocost /data
  vellum doctor --lies --serve 7007 --witness promises     # on another machine
  vellum doctor --lies --witness other:7007 /data          # then pull the plug
  vellum doctor --lies --check --witness other:7007 /data  # when it is on again";

const COMPARE_EXAMPLES: &str = "\
Exit codes:
  0  compared, and the second is not worse
  1  failed
  2  usage
  5  the verdict of a program is worse in the second

Examples:
  vellum doctor compare ssd.json nvme.json
  vellum doctor compare --json - before.json after.json";

/// Is a disk good enough for a program, and why not?
///
/// Writes in a directory as etcd, PostgreSQL and others do, each at its own pace, and says for each
/// whether the disk is good, marginal or not good enough, and how sure that is: in one line, with
/// the reason in one sentence, and with what to change as a line to paste. It takes a minute for
/// one program, and longer for several. Looks at filesystem, mount, devices and control groups, at
/// the figures of each second, and at itself: is it the disk that is slow, or this machine?
///
/// Takes no more than a tenth of the free space, in a directory that is removed in the end,
/// however the run ends. Ctrl-C, or SIGTERM, ends it with a verdict on what was measured until
/// then.
#[derive(Args, Debug)]
#[command(
    after_help = EXAMPLES,
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true
)]
pub struct DoctorArgs {
    /// Two results against each other.
    #[command(subcommand)]
    pub command: Option<DoctorCommand>,
    /// The directory in which the program writes
    #[arg(default_value = ".", value_hint = ValueHint::DirPath)]
    pub dir: PathBuf,
    /// For which programs: etcd, postgres, kafka, sqlite, nats, redis, mysql, vellum [default: all,
    /// or none with --p99]
    #[arg(long = "for", value_name = "NAMES", value_delimiter = ',')]
    pub programs: Vec<String>,
    /// For a program of your own: how many records come in a second, as 5000/s [default: as fast as
    /// it goes]
    #[arg(long, value_name = "RATE", value_parser = rate, requires = "p99")]
    pub rate: Option<f64>,
    /// For a program of your own: how long a record is, as 300 or 4KiB [default: 4096]
    #[arg(long, value_name = "BYTES", value_parser = bytes, requires = "p99")]
    pub bytes: Option<u64>,
    /// For a program of your own: 99 of a hundred records are durable after this, as 10ms
    #[arg(long, value_name = "SPAN", value_parser = values::millis)]
    pub p99: Option<Duration>,
    /// Take ten seconds: budgets, collectors and neighbours are not seen
    #[arg(long)]
    pub quick: bool,
    /// Take so many minutes: budgets are seen when they end
    #[arg(long, value_name = "COUNT", conflicts_with_all = ["quick", "seconds"])]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1440))]
    pub minutes: Option<u32>,
    /// About how long to measure [default: as long as sure verdicts take, 60 at least]
    #[arg(long, value_name = "COUNT", conflicts_with = "quick")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=86400))]
    pub seconds: Option<u32>,
    /// Causes that are known here and do not count, as memory,overlay
    #[arg(long, value_name = "CAUSES", value_delimiter = ',')]
    pub accept: Vec<Cause>,
    /// Write the result as JSON to a file; `-` prints it instead of the text
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub json: Option<PathBuf>,
    /// Write a test result for each program to a file, in the XML of JUnit, or print it with `-`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub junit: Option<PathBuf>,
    /// Write the result as one HTML file with charts, or print it with `-`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,
    /// Print lines for `io.cost.model`, `io.cost.qos`, `io.max` and `vm.dirty_bytes`, under which a
    /// log keeps its p99 beside a neighbour that writes; --p99 says which [default: 10ms]
    #[arg(long, conflicts_with_all = NO_LIMITS)]
    pub iocost: bool,
    /// Does durable mean durable?
    #[command(flatten)]
    pub lies: LiesArgs,
}

/// What a measurement takes, and the test of promises does not.
const OTHERS: [&str; 9] =
    ["programs", "rate", "bytes", "p99", "quick", "accept", "json", "junit", "html"];

/// What a measurement takes, and limits for a neighbour do not.
const NO_LIMITS: [&str; 8] =
    ["programs", "rate", "bytes", "accept", "json", "junit", "html", "lies"];

/// How promises are tested.
#[derive(Args, Debug)]
pub struct LiesArgs {
    /// Does durable mean durable? Write numbered blocks, and tell each number to a witness once its
    /// block is durable, until the plug is pulled; then --check
    #[arg(long, conflicts_with_all = OTHERS, help_heading = "Power cuts")]
    pub lies: bool,
    /// The witness: HOST:PORT of another machine, or a file on another disk [default: this
    /// terminal, for numbers to write down]
    #[arg(long, value_name = "WHERE", requires = "lies", help_heading = "Power cuts")]
    pub witness: Option<String>,
    /// Be the witness of other machines, at this port; what they promise is written to the file of
    /// --witness. There is no password
    #[arg(long, value_name = "PORT", requires = "witness", conflicts_with = "check")]
    #[arg(help_heading = "Power cuts")]
    pub serve: Option<u16>,
    /// After the cut: what was promised and is lost?
    #[arg(long, requires = "lies", help_heading = "Power cuts")]
    pub check: bool,
    /// The last number that was written down
    #[arg(long, value_name = "NUMBER", requires = "check", conflicts_with = "witness")]
    #[arg(help_heading = "Power cuts")]
    pub promised: Option<u64>,
    /// The disk was cut off, though this machine was not started again or the writer had ended
    #[arg(long, requires = "check", help_heading = "Power cuts")]
    pub was_cut: bool,
}

impl LiesArgs {
    /// Whether it writes blocks.
    pub(crate) fn is_writer(&self) -> bool {
        self.lies && !self.check && self.serve.is_none()
    }
}

/// What else the doctor does.
#[derive(Debug, Subcommand)]
pub enum DoctorCommand {
    /// Two results against each other.
    Compare(CompareArgs),
}

/// What is better or worse on another disk, or after a change?
///
/// Compares two files that --json wrote: the verdicts and causes of each program, and then every
/// figure, as `vellum bench compare` does.
#[derive(Args, Debug)]
#[command(after_help = COMPARE_EXAMPLES)]
pub struct CompareArgs {
    /// The first result
    #[arg(value_name = "A.json", value_hint = ValueHint::FilePath)]
    pub before: PathBuf,
    /// The second result
    #[arg(value_name = "B.json", value_hint = ValueHint::FilePath)]
    pub after: PathBuf,
    /// Write the comparison as JSON to a file; `-` prints it instead of the text
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub json: Option<PathBuf>,
}

/// Reads a rate: `5000/s`, or `5000`.
fn rate(text: &str) -> Result<f64, String> {
    let rate: Option<f64> = text.trim_end_matches("/s").parse().ok();
    let rate = rate.filter(|rate| (0.1..=10_000_000.0).contains(rate));
    rate.ok_or_else(|| "write records a second, as 5000/s".into())
}

/// Reads the length of a record.
fn bytes(text: &str) -> Result<u64, String> {
    match values::bytes(text)? {
        bytes @ 1..=1_048_576 => Ok(bytes),
        _ => Err("from 1 byte to 1 MiB".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_lengths_have_bounds() {
        assert_eq!((rate("5000/s"), rate("0.5")), (Ok(5000.0), Ok(0.5)));
        assert_eq!((bytes("300"), bytes("1MiB")), (Ok(300), Ok(1 << 20)));
        for text in ["0", "-1", "fast", "inf", "1e9/s"] {
            assert!(rate(text).is_err(), "{text}");
        }
        for text in ["0", "2MiB", "x"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }
}
