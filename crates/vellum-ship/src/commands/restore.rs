//! `vellum restore`: makes a log from its shipped objects.

use serde::Serialize;
use vellum_command::outcome::{Outcome, Result};
use vellum_command::output::print_json;
use vellum_command::shipping::{End, RestoreArgs};
use vellum_ship::read::{self, Restore, Restored, Until};

use super::remote;
use crate::output;

pub(super) async fn run(args: RestoreArgs) -> Result<Outcome> {
    let remote = remote(&args.url).await?;
    let until = until(args.to);
    let (resume, jobs) = (args.resume, usize::from(args.jobs));
    // As `vellum append` makes a text log.
    let how = Restore { until, resume, jobs, file_link: true };
    let bar = output::bar();
    let restored =
        read::restore(&remote, &args.dir, how, &mut |done, all| output::show(&bar, done, all))
            .await;
    bar.finish_and_clear();
    let restored = restored?;
    match args.json {
        true => print_json(&Report::from(&restored))?,
        false => tell(&restored),
    }
    let is_good = restored.damage.is_empty() && restored.gaps.is_empty();
    Ok(if is_good { Outcome::Good } else { Outcome::Damaged })
}

/// The end of the log that the options ask for.
fn until(end: Option<End>) -> Until {
    match end {
        None => Until::End,
        Some(End::Position(position)) => Until::Position(position),
        Some(End::Time(nanos)) => Until::Time(nanos),
    }
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
    output::say_gaps(&restored.gaps);
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
