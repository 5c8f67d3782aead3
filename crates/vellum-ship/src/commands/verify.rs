//! `vellum verify URL`: whether what is stored of a log is whole.

use clap::Args;
use futures_util::StreamExt;
use serde_json::json;
use std::sync::Arc;
use vellum_command::outcome::{Outcome, Result};
use vellum_command::output::print_json;
use vellum_ship::decide::Plan;
use vellum_ship::object::Kind;
use vellum_ship::read::{Extent, ReadError, Remote, Until, fetch_all};

use super::remote;
use crate::output;

/// Read everything that is stored of a log and report damage
///
/// Verified are the hash of each object and the chain through them, from the first position to the
/// last. The checksums of records were verified when they were shipped; `vellum restore` does it
/// again.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  vellum verify s3://bucket/app")]
pub(super) struct VerifyArgs {
    /// Where the log was shipped to
    url: String,
    /// The most objects that are fetched at the same time; fewer where they take more than 33 MiB
    #[arg(long, value_name = "COUNT", default_value_t = 4)]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=64))]
    jobs: u8,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The result of the check.
#[derive(Default)]
struct Found {
    objects: u64,
    damage: Vec<String>,
    gaps: Vec<(u64, u64)>,
    /// Bytes of the log that are stored.
    bytes: u64,
}

pub(super) async fn run(args: VerifyArgs) -> Result<Outcome> {
    let remote = remote(&args.url).await?;
    let plan = remote.plan().await?;
    let found = read_all(&remote, &plan, usize::from(args.jobs)).await?;
    if args.json {
        print_json(&as_json(&plan, &found))?;
    } else {
        found.damage.iter().try_for_each(output::print)?;
        tell(&plan, &found);
    }
    let is_good = found.damage.is_empty() && found.gaps.is_empty();
    Ok(if is_good { Outcome::Good } else { Outcome::Damaged })
}

async fn read_all(remote: &Remote, plan: &Plan, jobs: usize) -> Result<Found> {
    let extent = Extent::of(plan, Until::End, remote.store().as_ref()).await?;
    let (bar, all) = (output::bar(), extent.bytes());
    let mut found = Found { gaps: extent.gaps(), bytes: all, ..Found::default() };
    let mut done = 0;
    let pieces = extent.pieces.into_iter().filter(|piece| piece.header.kind != Kind::Gap).collect();
    let mut fetched = std::pin::pin!(fetch_all(Arc::clone(remote.store()), pieces, jobs));
    while let Some(fetched) = fetched.next().await {
        match fetched {
            Ok(Some(fetched)) => {
                found.objects += 1;
                done += fetched.piece.bytes_before(extent.end);
                output::show(&bar, done, all);
            }
            Ok(None) => return Err(ReadError::Unstable.into()),
            Err(error) if error.is_damage() => found.damage.push(error.to_string()),
            Err(error) => return Err(error.into()),
        }
    }
    bar.finish_and_clear();
    Ok(found)
}

fn as_json(plan: &Plan, found: &Found) -> serde_json::Value {
    json!({
        "begin": plan.begin,
        "end": plan.end.lsn,
        "generation": plan.generation,
        "objects": found.objects,
        "bytes": found.bytes,
        "chain": plan.end.chain.to_string(),
        "gaps": found.gaps,
        "damage": found.damage,
    })
}

fn tell(plan: &Plan, found: &Found) {
    output::say_gaps(&found.gaps);
    let verdict = match (found.damage.len(), found.gaps.len()) {
        (0, 0) => "all good".to_string(),
        (0, gaps) => format!("lost in {gaps} gaps before it was shipped"),
        (damaged, 0) => format!("{damaged} damaged"),
        (damaged, gaps) => format!("{damaged} damaged, and {gaps} gaps"),
    };
    let (begin, end) = (plan.begin, plan.end.lsn);
    output::say(format_args!(
        "{} objects with {} from {begin} to {end}: {verdict}",
        found.objects,
        output::bytes(found.bytes)
    ));
}
