//! `vellum bench`: measurements, a file for each suite; here is what they have in common.

pub(super) mod append;
pub(super) mod commit;
pub(super) mod sync;

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use vellum_bench::Report;

use crate::lowargs::BenchPlaceArgs;
use crate::outcome::{Outcome, Result};
use crate::output;

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

/// Where the JSON goes.
enum Sink<'a> {
    Stdout,
    File(File, &'a Path),
}

impl Sink<'_> {
    /// Before the run, so that minutes of it are not in vain; what the file holds stays till then.
    fn open(path: &Path) -> Result<Sink<'_>> {
        if path == Path::new("-") {
            return Ok(Sink::Stdout);
        }
        let file = File::options().write(true).create(true).truncate(false).open(path);
        Ok(Sink::File(file.with_context(|| format!("cannot write {}", path.display()))?, path))
    }
}

fn overwrite(mut file: &File, text: &str) -> io::Result<()> {
    file.set_len(0)?;
    file.write_all(text.as_bytes())
}

/// Hands out a report: the table, the JSON, or both.
fn deliver<C: serde::Serialize>(
    sink: Option<Sink<'_>>,
    report: &Report<C>,
    table: &str,
) -> Result<()> {
    match sink {
        Some(Sink::Stdout) => output::print(&report.to_json()?),
        Some(Sink::File(file, path)) => {
            // The table first: it is there whatever becomes of the file.
            output::print(table)?;
            overwrite(&file, &report.to_json()?)
                .with_context(|| format!("cannot write {}", path.display()))
        }
        None => output::print(table),
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
