//! `vellum prepare`: segments made ready ahead of need, or given back.

use std::path::Path;

use anyhow::{Context, bail};
use rustix::fs::statvfs;
use serde::Serialize;
use vellum::stat::PathOrigin;
use vellum::{CommitPath, Layout, Log};
use vellum_bench::advise::commit_paths;
use vellum_command::outcome::{Outcome, Result};
use vellum_command::output;

use super::open::open_to_write;
use super::stat::prepared_segments;
use crate::args::{MeasureWhen, PrepareArgs};
use crate::table;

#[derive(Serialize)]
struct JsonPrepare {
    segments_made: u64,
    segments_released: u64,
    /// The stored choice: `null` where nothing was measured or chosen.
    commit_path: Option<String>,
    commit_path_reason: Option<String>,
}

/// A way to commit that was stored, and why.
struct Stored {
    path: CommitPath,
    reason: String,
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
    let stored = if args.release { None } else { store_commit_path(&log, args)? };
    let note = |text| output::note(args.quiet, text);
    if args.json {
        output::print_json(&JsonPrepare {
            segments_made,
            segments_released,
            commit_path: stored.as_ref().map(|stored| stored.path.to_string()),
            commit_path_reason: stored.map(|stored| stored.reason),
        })?;
    } else if args.release {
        note(format!("{} given back", table::count(segments_released, "segment")));
    } else {
        note(format!("{} made ready", table::count(segments_made, "segment")));
        if let Some(Stored { path, reason }) = stored {
            note(format!("commits go by {path} from the next opening on: {reason}"));
        }
    }
    Ok(Outcome::Good)
}

/// Stores the way to commit that is asked for, or the fastest if it is to be measured.
fn store_commit_path(log: &Log, args: &PrepareArgs) -> Result<Option<Stored>> {
    if let Some(path) = args.commit_path {
        path.store_chosen(log)?;
        return Ok(Some(Stored { path, reason: "chosen".into() }));
    }
    let Some(found) = log.stat()?.commit_path else { return Ok(None) };
    let is_wanted = match args.measure {
        MeasureWhen::Auto => found.origin == PathOrigin::Default,
        MeasureWhen::Always => true,
        MeasureWhen::Never => false,
    };
    if !is_wanted {
        return Ok(None);
    }
    match commit_paths(&args.log, found.safe_block_bytes) {
        Ok(measured) => {
            let path = measured.path()?;
            path.store_measured(log)?;
            Ok(Some(Stored { path, reason: measured.reason }))
        }
        // The segments are ready, which was the first request.
        Err(error) if args.measure == MeasureWhen::Auto => {
            output::say(format_args!("the ways to commit were not timed: {error}"));
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
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
