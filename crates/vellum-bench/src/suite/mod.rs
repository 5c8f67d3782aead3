//! The suites: what is compared, and how a run goes.
//!
//! A suite has a module with `Config`, `Case` and `run`, and builds on the same ground as the
//! others: [`crate::ways`], [`crate::process::race`], [`crate::verify`] and [`crate::report`].

pub mod append;
pub mod commit;
pub mod image;
pub mod loggers;
pub mod saturate;
pub mod sync;
pub mod write;

use std::fs::File;
use std::path::Path;

use crate::conditions::Conditions;
use crate::error::{Context, Result};

/// Above this load on the machine, something else is running.
const LOAD_MAX: f64 = 0.5;

/// Says so if other work shares the machine.
pub(crate) fn load_warning(conditions: &Conditions) -> Vec<String> {
    let load = conditions.load_average.map(|[load, ..]| load).filter(|load| *load > LOAD_MAX);
    let warning = load.map(|load| {
        let cores = conditions.machine.cores.unwrap_or(1);
        format!(
            "the load average was {load:.2} before the start: other work shares the {cores} cores"
        )
    });
    warning.into_iter().collect()
}

/// Waits until the filesystem of `dir` has written everything, so that no round pays for what was
/// done before it.
pub(crate) fn settle(dir: &Path) -> Result<()> {
    let dir_file = File::open(dir).context(|| format!("open {}", dir.display()))?;
    rustix::fs::syncfs(&dir_file).context(|| format!("sync the filesystem of {}", dir.display()))
}
