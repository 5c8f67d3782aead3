//! `vellum stat URL`: the stored part of a log.

use clap::Args;
use serde_json::json;
use vellum_command::moment::text_of_nanos;
use vellum_command::outcome::{Outcome, Result};
use vellum_command::output::print_json;
use vellum_ship::decide::Plan;
use vellum_ship::object::Kind;
use vellum_ship::read::{Remote, gaps};

use super::remote;
use crate::output;

/// Show what is stored of a log: positions, generations, gaps, and when it was shipped last
///
/// Costs a list and a small request for each object. Bodies are not read: `vellum verify URL` does.
/// Exits with 3 if something was lost before it was shipped.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  vellum stat --json s3://bucket/app")]
pub(super) struct StatArgs {
    /// Where the log was shipped to
    url: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: StatArgs) -> Result<Outcome> {
    let remote = remote(&args.url).await?;
    let plan = remote.plan().await?;
    let value = describe(&remote, &plan);
    if args.json {
        print_json(&value)?;
    } else {
        for (name, value) in value.as_object().into_iter().flatten() {
            let text = value.as_str().map_or_else(|| value.to_string(), String::from);
            output::print(format_args!("{:<16} {text}", name.replace('_', " ")))?;
        }
    }
    let gaps = gaps(&plan.pieces);
    output::say_gaps(&gaps);
    Ok(if gaps.is_empty() { Outcome::Good } else { Outcome::Damaged })
}

fn describe(remote: &Remote, plan: &Plan) -> serde_json::Value {
    let count = |kind| plan.pieces.iter().filter(|piece| piece.header.kind == kind).count();
    let newest = plan.pieces.last().map(|piece| text_of_nanos(piece.header.time));
    let stored: u64 = plan.pieces.iter().map(|piece| piece.header.stored_bytes).sum();
    json!({
        "log_id": remote.identity().log_id,
        "layout": format!("{:?}", remote.shape().layout()).to_lowercase(),
        "segment_bytes": remote.identity().segment_bytes,
        "begin": plan.begin,
        "end": plan.end.lsn,
        "bytes": plan.bytes(),
        "stored_bytes": stored,
        "generation": plan.generation,
        "chunks": count(Kind::Chunk),
        "merged": count(Kind::Merged),
        "gaps": count(Kind::Gap),
        "newest": newest,
        "chain": plan.end.chain.to_string(),
    })
}
