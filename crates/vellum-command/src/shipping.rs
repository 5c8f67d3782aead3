//! The commands of `vellum-ship` that `vellum` has in its help too.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use clap::{Args, ValueHint};

use crate::moment::moment;
use crate::outcome::BadValue;
use crate::values::{bytes, short_span};

const SHIP: &str = "\
Examples:
  vellum ship app.log s3://bucket/app
  vellum ship app.log file:///backup/app --once
  vellum ship app.log s3://bucket/app --retain 30d --dry-run
  vellum ship app.log --detach";

const RESTORE: &str = "\
Examples:
  vellum restore s3://bucket/app restored.log
  vellum restore s3://bucket/app restored.log --to '2026-11-23 08:30'
  vellum restore s3://bucket/app restored.log --resume";

const LS: &str = "\
Examples:
  vellum ls s3://bucket
  vellum ls --json file:///backup | jq -r .url";

/// Ship what is durable in a log to object storage, as it comes
///
/// One process ships a log at a time; more of them wait until it ends. SIGTERM and SIGINT finish
/// the requests in flight and end with exit code 0. A log that is shipped keeps records that are
/// not shipped yet.
#[derive(Args, Debug)]
#[command(after_help = SHIP)]
pub struct ShipArgs {
    /// The log's directory
    #[arg(value_hint = ValueHint::AnyPath)]
    pub log: PathBuf,
    /// Where it goes
    #[arg(required_unless_present = "detach")]
    pub url: Option<String>,
    /// Ship the log no more: it keeps nothing for a shipper, and may be shipped to another URL
    #[arg(long, conflicts_with_all = ["url", "once", "take_over", "dry_run", "retain", "max_unshipped"])]
    pub detach: bool,
    /// Ship what is durable now, and end
    #[arg(long)]
    pub once: bool,
    /// How often something new is shipped
    #[arg(long, value_name = "SPAN", default_value = "1s", value_parser = short_span)]
    pub interval: Duration,
    /// How often at most, where a commit waits for it
    #[arg(long, value_name = "SPAN", default_value = "250ms", value_parser = short_span)]
    pub min_interval: Duration,
    /// Ship to a URL that another shipper or another copy of the log has shipped to
    #[arg(long)]
    pub take_over: bool,
    /// The most bytes that the log keeps because they are not shipped, as 10GiB; older records are
    /// then removed, which leaves a gap in the store
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub max_unshipped: Option<u64>,
    /// How long a generation lasts before the next one begins; 0s: for ever
    #[arg(long, value_name = "SPAN", default_value = "1d", value_parser = short_span)]
    pub rotate: Duration,
    /// Delete generations that ended longer ago, as 30d, or that are older than the newest so many
    /// bytes in the store, as 100GiB
    #[arg(long, value_name = "SPAN|BYTES", value_parser = retained)]
    pub retain: Option<Retained>,
    /// Say what would be shipped and deleted and what requests cost, and do nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Kafka: the partition that gets the records
    #[arg(long, value_name = "NUMBER")]
    pub partition: Option<i32>,
    /// Kafka: an option of librdkafka; VELLUM_KAFKA_SASL_PASSWORD in the environment is
    /// sasl.password
    #[arg(long, value_name = "KEY=VALUE")]
    pub kafka_config: Vec<String>,
}

impl ShipArgs {
    /// Where it goes; nowhere if it is detached.
    pub fn url(&self) -> &str {
        self.url.as_deref().unwrap_or_default()
    }
}

/// Restore a log from its shipped objects
///
/// That everything is stored is checked before anything is written. Afterwards the log is durable,
/// and every byte of it was verified: the hashes of objects, the chain through them, the checksums
/// of records. The directory has to be empty, or not to be there.
#[derive(Args, Debug)]
#[command(after_help = RESTORE)]
pub struct RestoreArgs {
    /// Where the log was shipped to
    pub url: String,
    /// The path of the new log. Of a text log it is a link to the newest file, as `vellum append`
    /// makes it, unless it is a directory or ends with a slash
    #[arg(value_hint = ValueHint::DirPath)]
    pub dir: PathBuf,
    /// Restore the records before this position, or those shipped by this time, as 10:00,
    /// '2026-11-23 08:30' (local), 2026-11-23T08:30:00Z, 1h (ago) or yesterday
    ///
    /// The log ends behind its last whole record there. By time, it is as exact as the interval in
    /// which the log was shipped.
    #[arg(long, value_name = "POSITION|TIME", value_parser = end, allow_hyphen_values = true)]
    pub to: Option<End>,
    /// Continue a restore that was interrupted, in the same directory
    #[arg(long)]
    pub resume: bool,
    /// The most objects that are fetched at the same time; fewer where they take more than 33 MiB
    #[arg(long, value_name = "COUNT", default_value_t = 4)]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=64))]
    pub jobs: u8,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
}

/// List the logs below a URL: how many bytes of log each has, and when it was shipped last
#[derive(Args, Debug)]
#[command(after_help = LS)]
pub struct LsArgs {
    /// A log, or the common beginning of the URLs of many logs
    pub url: String,
    /// Print JSON Lines
    #[arg(long)]
    pub json: bool,
}

/// How much of the shipped log is kept: `Retain` of the library `vellum-ship`. Neither of the two
/// may depend on the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retained {
    /// Generations that ended so long ago at most.
    Age(Duration),
    /// The newest so many bytes.
    Bytes(u64),
}

/// Where a restored log ends: `Until` of the library `vellum-ship`, to which the same applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Before a position.
    Position(u64),
    /// Behind what was shipped by a time, in nanoseconds since 1970.
    Time(u64),
}

/// Reads a span of time, or a number of bytes; without a unit it is neither.
fn retained(text: &str) -> Result<Retained, String> {
    let bytes = || bytes(text).ok().filter(|_| text.ends_with(char::is_alphabetic));
    let retained =
        short_span(text).ok().map(Retained::Age).or_else(|| bytes().map(Retained::Bytes));
    retained.ok_or_else(|| "a time as 30d, or bytes as 100GiB, are wanted".to_string())
}

/// Reads a position or a time.
fn end(text: &str) -> Result<End, BadValue> {
    if let Ok(position) = text.parse() {
        return Ok(End::Position(position));
    }
    let time = moment(text).map_err(|error| BadValue(format!("give a position, or {error}")))?;
    let nanos = time.duration_since(SystemTime::UNIX_EPOCH).map(|since| since.as_nanos());
    let nanos = nanos.ok().and_then(|nanos| u64::try_from(nanos).ok());
    nanos.map(End::Time).ok_or_else(|| BadValue("that time is too far away".to_string()))
}
