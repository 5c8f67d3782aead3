//! `vellum ls URL`: the logs below a URL.

use std::sync::Arc;

use serde_json::json;
use url::Url;
use vellum_command::moment::text_of_nanos;
use vellum_command::outcome::{DAMAGED, Outcome, Result};
use vellum_command::output::print_json;
use vellum_command::shipping::LsArgs;
use vellum_ship::decide::Plan;
use vellum_ship::read::{Remote, find_logs};
use vellum_ship::store::{self, Store};

use crate::output;

pub(super) async fn run(args: LsArgs) -> Result<Outcome> {
    let store = super::open(&args.url)?;
    let mut outcome = Outcome::Good;
    for name in find_logs(store.as_ref()).await? {
        let url = url_below(&args.url, &name);
        match look(&url).await {
            Ok((remote, plan)) => print(&args, &url, &remote, &plan)?,
            // The other logs are of use.
            Err(error) => {
                output::say(format_args!("{url}: {error}"));
                let is_damage = crate::code(&error) == Some(DAMAGED);
                outcome = outcome.and(if is_damage { Outcome::Damaged } else { Outcome::Failed });
            }
        }
    }
    Ok(outcome)
}

/// The URL of a log below another URL, with other characters than letters of a URL as `%41`.
pub(super) fn url_below(url: &str, name: &str) -> String {
    let mut below = match Url::parse(url) {
        Ok(below) if !name.is_empty() => below,
        _ => return url.to_string(),
    };
    if let Ok(mut parts) = below.path_segments_mut() {
        parts.pop_if_empty().extend(name.split('/'));
    }
    below.into()
}

async fn look(url: &str) -> Result<(Remote, Plan)> {
    let store: Arc<dyn Store> = store::open(url)?;
    let remote = Remote::open(store).await?;
    let plan = remote.plan().await?;
    Ok((remote, plan))
}

fn print(args: &LsArgs, url: &str, remote: &Remote, plan: &Plan) -> Result<()> {
    let newest = plan.pieces.last().map(|piece| text_of_nanos(piece.header.time));
    if args.json {
        let log_id = &remote.identity().log_id;
        let (begin, end) = (plan.begin, plan.end.lsn);
        print_json(&json!({
            "url": url, "log_id": log_id, "begin": begin, "end": end, "bytes": plan.bytes(),
            "newest": newest
        }))?;
        return Ok(());
    }
    let size = output::bytes(plan.bytes());
    let newest = newest.unwrap_or_else(|| "-".to_string());
    output::print(format_args!("{newest:<24}  {size:>11}  {url}"))?;
    Ok(())
}
