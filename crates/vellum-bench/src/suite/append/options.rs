//! The options of `append`. With `--saturate` they are those of another suite.

use std::time::Duration;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, FromArgMatches};
use vellum_command::values::bytes;

use super::Config;
use crate::place::Scope;
use crate::setting::Setting;
use crate::suite::options::usual;
use crate::suite::{Kind, Suite, saturate};
use crate::ways::WayName;

const EXAMPLES: &str = "\
Examples:
  vellum bench append --quick
  vellum bench append --dir /mnt/data --json result.json
  vellum bench append --setting 4x100000x128 --setting 8x1000x65536 --rounds 9
  vellum bench append --processes 1,2,4,8 --bytes 128,1024 --ways vellum-framed,write
  vellum bench append --processes 1 --ways vellum-text,write --between-bytes 64K
  vellum bench append --saturate --seconds 60 --dir /mnt/data
  vellum bench append --quick --json - | jq '.rows | map_values(.metrics.time.median)'";

/// The suite `append`, or `saturate`, as a command line can ask for it.
pub(crate) const KIND: Kind = Kind::new("append", Options::augment_args, read);

/// Many processes append to one log: the cost of a record
///
/// Each way of appending runs once in each round, one after the other; the first round is not
/// counted. After each, every record is looked for: one that is lost, torn or doubled fails the
/// run. Shown are median, minimum and maximum of the rounds, and how many times as fast as
/// write(2) with O_APPEND in the same round.
///
/// With --saturate the question is another: what happens when the processes append for longer than
/// memory and device can absorb? Each way appends for --seconds, and the kernel stops a process
/// that makes too many pages dirty. Shown are the latencies of single records, how long a writer
/// stood still, and how much memory and disk it took. Every way keeps the same amount of its log;
/// the acknowledged records that were not cut off are looked for.
///
/// The full run takes minutes and writes twenty gigabytes, nearly all of it for the way `direct`;
/// --quick takes seconds.
#[derive(Args, Debug)]
#[command(
    after_help = EXAMPLES,
    mut_arg("rounds", |option| usual(option, "5", "2")),
    mut_arg("quick", |option| option.help(
        "A fifth of the records, two rounds, and without the slow ways direct, aio and io_uring, \
         as far as nothing else is asked for",
    )),
)]
struct Options {
    /// How much, as PROCESSESxRECORDSxBYTES; may be repeated
    /// [default: 4x100000x128,4x100000x1,4x10000x4095]
    #[arg(long = "setting", value_name = "PxRxB", value_delimiter = ',')]
    #[arg(conflicts_with_all = ["processes", "records", "bytes"])]
    settings: Vec<Setting>,
    /// How many processes; with --records and --bytes, every combination is run
    #[arg(long, value_name = "COUNTS", value_delimiter = ',')]
    processes: Vec<u32>,
    /// How many records each process appends
    #[arg(long, value_name = "COUNTS", value_delimiter = ',')]
    records: Vec<u64>,
    /// How long a record is, as 128, 4K or 1M
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = bytes)]
    bytes: Vec<u64>,
    /// Before each append a process walks over so many bytes of its own, as a program that does
    /// other work: then the append finds nothing of the log in the caches that those fill. Each
    /// append is timed alone, and what reading the clock takes is taken off [default: 0]
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    #[arg(conflicts_with = "saturate")]
    between_bytes: Option<u64>,
    /// Which ways of appending: vellum-framed, vellum-text, write, writev, stdio, direct, aio,
    /// io_uring [default: all of these], vellum-c (vellum-framed through the C interface)
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    ways: Vec<WayName>,
    /// Append until memory and device can absorb no more
    #[arg(long, conflicts_with_all = ["settings", "records"])]
    saturate: bool,
    /// With --saturate: for how long each way appends [default: 20]
    #[arg(long, value_name = "SECONDS", requires = "saturate")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: Option<u64>,
    /// With --saturate: a way ends earlier when it has appended so much
    #[arg(long, value_name = "BYTES", requires = "saturate", value_parser = bytes)]
    bytes_max: Option<u64>,
    /// With --saturate: how much of a log is kept [default: twice the dirty limit, if there is
    /// room]
    #[arg(long, value_name = "BYTES", requires = "saturate", value_parser = bytes)]
    keep: Option<u64>,
    #[command(flatten)]
    scope: Scope,
}

fn read(matches: &ArgMatches) -> Result<Box<dyn Suite>, clap::Error> {
    let options = Options::from_arg_matches(matches)?;
    let asked = matches.value_source("rounds") == Some(ValueSource::CommandLine);
    let rounds = asked.then_some(options.scope.rounds);
    let mut suite: Box<dyn Suite> = match options.saturate {
        true => Box::new(options.saturating()?),
        false => Box::new(options.appending()),
    };
    suite.scope_mut().rounds = rounds.unwrap_or(suite.scope().rounds);
    Ok(suite)
}

impl Options {
    fn appending(&self) -> Config {
        let mut config = if self.scope.quick { Config::quick("") } else { Config::new("") };
        take(&mut config.ways, &self.ways);
        config.between_bytes = self.between_bytes.unwrap_or(0);
        if !self.settings.is_empty() {
            config.settings.clone_from(&self.settings);
        } else if let Some(settings) = self.combinations(config.settings[0]) {
            config.settings = settings;
        }
        config
    }

    /// Every combination of the lists; a choice without a list is as in the setting `usual`.
    fn combinations(&self, usual: Setting) -> Option<Vec<Setting>> {
        let (processes, records) = (&self.processes, &self.records);
        let bytes: Vec<usize> = self.bytes.iter().map(|bytes| *bytes as usize).collect();
        if processes.is_empty() && records.is_empty() && bytes.is_empty() {
            return None;
        }
        let mut settings = Vec::new();
        for &processes in list(processes, &usual.processes) {
            for &records in list(records, &usual.records) {
                for &bytes in list(&bytes, &usual.bytes) {
                    settings.push(Setting::new(processes, records, bytes));
                }
            }
        }
        Some(settings)
    }

    fn saturating(&self) -> Result<saturate::Config, clap::Error> {
        use saturate::Config;
        let mut config = if self.scope.quick { Config::quick("") } else { Config::new("") };
        take(&mut config.ways, &self.ways);
        if let Some(processes) = only(&self.processes, "--processes")? {
            config.processes = processes;
        }
        if let Some(bytes) = only(&self.bytes, "--bytes")? {
            config.bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        }
        config.duration = self.seconds.map_or(config.duration, Duration::from_secs);
        config.bytes_max = self.bytes_max;
        config.kept_bytes = self.keep.or(config.kept_bytes);
        Ok(config)
    }
}

/// Takes the wanted list, if there is one.
fn take<T: Clone>(into: &mut Vec<T>, asked: &[T]) {
    if !asked.is_empty() {
        *into = asked.to_vec();
    }
}

fn list<'a, T>(asked_for: &'a [T], usual: &'a T) -> &'a [T] {
    if asked_for.is_empty() { std::slice::from_ref(usual) } else { asked_for }
}

/// The one value of a list that may have several elsewhere.
fn only<T: Copy>(list: &[T], option: &str) -> Result<Option<T>, clap::Error> {
    match list {
        [] => Ok(None),
        [one] => Ok(Some(*one)),
        _ => {
            let message = format!("--saturate takes one value of {option}\n");
            Err(clap::Error::raw(ErrorKind::TooManyValues, message))
        }
    }
}
