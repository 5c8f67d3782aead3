//! `vellum restore`: a log from what was shipped.

use std::path::PathBuf;
use std::time::SystemTime;

use clap::Args;
use serde::Serialize;
use vellum_command::moment::moment;
use vellum_command::outcome::{BadValue, Outcome, Result};
use vellum_command::output::print_json;
use vellum_ship::read::{self, Restore, Restored, Until};

use super::remote;
use crate::output::{self, Bar};

/// Restore a log from what was shipped
///
/// That everything is stored is checked before anything is written. Afterwards the log is durable,
/// and every byte of it was verified: the hashes of objects, the chain through them, the checksums
/// of records. The directory has to be empty, or not to be there.
#[derive(Args, Debug)]
pub(super) struct RestoreArgs {
    /// Where the log was shipped to
    url: String,
    /// The directory of the new log
    dir: PathBuf,
    /// Restore what is before this position, or what was shipped by this time, as 10:00,
    /// '2026-11-23 08:30' (local), 2026-11-23T08:30:00Z, 1h (ago) or yesterday
    ///
    /// The log ends behind its last whole record there. By time, it is as exact as the interval in
    /// which the log was shipped.
    #[arg(long, value_name = "POSITION|TIME", value_parser = until, allow_hyphen_values = true)]
    to: Option<Until>,
    /// Continue a restore that was interrupted, in the same directory
    #[arg(long)]
    resume: bool,
    /// The most objects that are fetched at the same time; fewer where they take more than 33 MiB
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=64))]
    jobs: u8,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: RestoreArgs) -> Result<Outcome> {
    let remote = remote(&args.url).await?;
    let until = args.to.unwrap_or(Until::End);
    let how = Restore { until, resume: args.resume, jobs: usize::from(args.jobs) };
    let mut bar = Bar::new();
    let restored =
        read::restore(&remote, &args.dir, how, &mut |done, all| bar.show(done, all)).await;
    bar.finish();
    let restored = restored?;
    match args.json {
        true => print_json(&Report::from(&restored))?,
        false => tell(&restored),
    }
    let is_good = restored.damage.is_empty() && restored.gaps.is_empty();
    Ok(if is_good { Outcome::Good } else { Outcome::Damaged })
}

/// Reads a position or a time.
fn until(text: &str) -> std::result::Result<Until, BadValue> {
    if let Ok(position) = text.parse() {
        return Ok(Until::Position(position));
    }
    let time = moment(text).map_err(|error| BadValue(format!("give a position, or {error}")))?;
    let nanos = time.duration_since(SystemTime::UNIX_EPOCH).map(|since| since.as_nanos());
    let nanos = nanos.ok().and_then(|nanos| u64::try_from(nanos).ok());
    nanos.map(Until::Time).ok_or_else(|| BadValue("that time is too far away".to_string()))
}

fn tell(restored: &Restored) {
    let Restored { begin, end, written_end, stored_end, .. } = restored;
    let size = output::bytes(restored.bytes);
    output::say(format_args!(
        "restored {size} from {begin} to {end}: {} records, {} objects of {} generations",
        restored.records,
        restored.objects,
        restored.generation + 1
    ));
    output::say(format_args!(
        "verified: the hash of each object, the chain up to {}, the checksums of all records",
        restored.chain
    ));
    if stored_end > written_end {
        output::say(format_args!("the log goes on in the store, up to {stored_end}"));
    }
    if written_end > end {
        output::say(format_args!("what is from {end} on is no whole record, and was left out"));
    }
    if let Some(to) = restored.trimmed_to {
        output::say(format_args!(
            "the log had been trimmed, and begins at {to}; what was before is stored: `cat` prints \
             it, and a restore with --to before the trim has it"
        ));
    }
    tell_cuts(restored);
    restored.damage.iter().for_each(output::say);
}

fn tell_cuts(restored: &Restored) {
    for seal in restored.seals.iter().filter(|seal| seal.fork < seal.start) {
        output::say(format_args!(
            "the log was cut at {} when generation {} began; {} to {} are not in it",
            seal.fork,
            seal.generation + 1,
            seal.fork,
            seal.start
        ));
    }
    for (start, end) in &restored.gaps {
        output::say(format_args!("{start} to {end} were lost before they were shipped"));
    }
}

/// The report as JSON.
#[derive(Serialize)]
struct Report<'a> {
    begin: u64,
    end: u64,
    written_end: u64,
    stored_end: u64,
    bytes: u64,
    generation: u32,
    objects: u64,
    records: u64,
    chain: String,
    gaps: &'a [(u64, u64)],
    damage: &'a [String],
    trimmed_to: Option<u64>,
}

impl<'a> From<&'a Restored> for Report<'a> {
    fn from(restored: &'a Restored) -> Report<'a> {
        let Restored { begin, end, written_end, stored_end, .. } = *restored;
        let Restored { generation, objects, records, .. } = *restored;
        let chain = restored.chain.to_string();
        let (gaps, damage) = (&restored.gaps[..], &restored.damage[..]);
        Report {
            begin,
            end,
            written_end,
            stored_end,
            bytes: restored.bytes,
            generation,
            objects,
            records,
            chain,
            gaps,
            damage,
            trimmed_to: restored.trimmed_to,
        }
    }
}
