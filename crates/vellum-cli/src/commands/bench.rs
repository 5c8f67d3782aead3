//! `vellum bench`: measurements, a file for each suite; here is what they have in common.

pub(super) mod all;
pub(super) mod append;
pub(super) mod commit;
pub(super) mod compare;
pub(super) mod image;
mod outputs;
mod saturate;
pub(super) mod sync;
pub(super) mod write;

use std::path::PathBuf;

use anyhow::bail;

use crate::lowargs::BenchPlaceArgs;
use crate::outcome::{Outcome, Result};

use outputs::{Outputs, deliver};

impl BenchPlaceArgs {
    /// Filesystems that are made for the run take the place of the directory that nobody named.
    fn is_in_directory(&self) -> bool {
        self.dir.is_some() || self.fs.is_empty()
    }

    /// Where the directory of the run is made.
    fn home(&self) -> PathBuf {
        let usual = if self.is_in_directory() { PathBuf::from(".") } else { std::env::temp_dir() };
        self.dir.clone().unwrap_or(usual)
    }
}

/// A case that failed fails the run: its records were lost, torn or doubled, or it could not go on.
fn judge(mut failures: Vec<String>) -> Result<Outcome> {
    failures.dedup();
    if failures.is_empty() {
        return Ok(Outcome::Good);
    }
    bail!("failed: {}; the reasons are in the report", failures.join(", "))
}
