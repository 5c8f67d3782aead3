//! `vellum-ship trim`: old generations are deleted.

use std::time::Duration;

use clap::Args;
use vellum_command::outcome::{Outcome, Result};
use vellum_command::values::short_span;
use vellum_ship::driver;
use vellum_ship::store;

use crate::output;

/// Delete what a store has of generations that ended long ago
///
/// A generation ends when a shipper takes over or the log was truncated. The generation that is
/// shipped to is never touched.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  vellum trim --retain 30d s3://bucket/app")]
pub(super) struct TrimArgs {
    /// Where the log is
    url: String,
    /// How long a generation is kept after its end
    #[arg(long, value_name = "SPAN", value_parser = short_span)]
    retain: Duration,
    /// Say what would be deleted, and delete nothing
    #[arg(long)]
    dry_run: bool,
}

pub(super) async fn run(args: TrimArgs) -> Result<Outcome> {
    let trimmed = driver::trim(store::open(&args.url)?, args.retain, args.dry_run).await?;
    let would = if args.dry_run { "would be " } else { "" };
    output::print(format_args!(
        "{} objects of {} generations {would}deleted",
        trimmed.objects, trimmed.generations
    ))?;
    Ok(Outcome::Good)
}
