//! `vellum prepare`: segments made ready ahead of need, or given back.

use std::path::Path;

use anyhow::{Context, bail};
use rustix::fs::statvfs;
use serde::Serialize;
use vellum::{Layout, Log};

use super::open_to_write;
use super::stat::prepared_segments;
use crate::lowargs::PrepareArgs;
use crate::outcome::{Outcome, Result};
use crate::{output, table};

#[derive(Serialize)]
struct JsonPrepare {
    segments_made: u64,
    segments_released: u64,
}

pub(super) fn run(args: &PrepareArgs) -> Result<Outcome> {
    let log = open_to_write(&args.log)?;
    let (mut segments_made, mut segments_released) = (0, 0);
    if args.release {
        segments_released = log.release_prepared()?;
    } else {
        if !args.force {
            check_space(&log, &args.log, args.segments)?;
        }
        segments_made = log.prepare(args.segments)?;
    }
    if args.json {
        output::print_json(&JsonPrepare { segments_made, segments_released })?;
    } else if args.release {
        output::say(format_args!("{} given back", table::count(segments_released, "segment")));
    } else {
        output::say(format_args!("{} made ready", table::count(segments_made, "segment")));
    }
    Ok(Outcome::Good)
}

/// Refuses what would leave hardly anything to others.
fn check_space(log: &Log, path: &Path, segments: u64) -> Result<()> {
    let stat = log.stat()?;
    let missing = segments.saturating_sub(prepared_segments(&stat));
    if missing == 0 || stat.layout == Layout::Text {
        return Ok(());
    }
    let disk =
        statvfs(path).with_context(|| format!("cannot ask for space at {}", path.display()))?;
    let (all, free) =
        (disk.f_blocks.saturating_mul(disk.f_frsize), disk.f_bavail.saturating_mul(disk.f_frsize));
    let wanted = missing.saturating_mul(stat.segment_capacity_bytes);
    if free.saturating_sub(wanted) >= all / 10 {
        return Ok(());
    }
    bail!(
        "{} of {} would leave less than a tenth of the disk free, of whose {} {} are free now; \
         --force makes them all the same",
        table::count(missing, "segment"),
        table::bytes(stat.segment_capacity_bytes),
        table::bytes(all),
        table::bytes(free)
    )
}
