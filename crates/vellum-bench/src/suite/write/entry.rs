//! An entry of a table: a way to write a file, in a state, with so many threads.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::clock::Span;
use super::config::Table;
use super::verify::stamped;
use crate::error::{Error, Result};
use crate::process;

/// One way of a table.
pub(super) struct Entry {
    pub(super) table: Table,
    /// The keys that tell it from the others, as the report has them.
    pub(super) keys: Vec<(&'static str, String)>,
    pub(super) job: Box<dyn Job>,
    /// With how many threads it writes, and whether others with as many are compared with it.
    pub(super) threads: u32,
    pub(super) is_baseline: bool,
}

/// The work of a case.
pub(super) trait Job {
    /// Makes the file, writes it and syncs it. Called in a process of its own, which its calls may
    /// kill.
    fn run(&self, site: &Site<'_>) -> Result<Sample>;

    /// Is all of it there? Called in another process, after that one has ended.
    fn verify(&self, site: &Site<'_>) -> Result<()> {
        stamped(&site.file(), 0, site.bytes, site.round)
    }
}

/// The place and the content of a case in one round.
pub(super) struct Site<'a> {
    /// An empty directory.
    pub(super) dir: &'a Path,
    /// Of the file, or of all files together.
    pub(super) bytes: u64,
    pub(super) round: u32,
}

/// The times of one round of a case, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sample {
    /// Until the file was ready to be written into.
    pub(super) preparation: f64,
    /// Until the last write returned.
    pub(super) write: f64,
    /// From then until all of it was synced.
    pub(super) sync: f64,
    /// Of the processors' time for writing and syncing; the kernel's own threads are not in it.
    pub(super) cpu: f64,
    /// How many bytes of blocks the file had in the end, in the table `create`.
    pub(super) allocated: f64,
}

impl Entry {
    pub(super) fn new(table: Table, job: impl Job + 'static) -> Entry {
        let (keys, job) = (Vec::new(), Box::new(job));
        Entry { table, keys, job, threads: 1, is_baseline: false }
    }

    /// Adds a key.
    pub(super) fn key(mut self, name: &'static str, value: impl ToString) -> Entry {
        self.keys.push((name, value.to_string()));
        self
    }

    /// Adds the number of threads, as a key too.
    pub(super) fn threads(mut self, threads: u32) -> Entry {
        self.threads = threads;
        self.key("threads", threads)
    }

    /// All its names, for a watcher.
    pub(super) fn title(&self) -> String {
        let values = self.keys.iter().map(|(_, value)| value.as_str());
        std::iter::once(self.table.as_str()).chain(values).collect::<Vec<_>>().join(", ")
    }

    pub(super) fn way(&self) -> &str {
        self.keys.iter().find(|(name, _)| *name == "way").map_or("", |(_, value)| value)
    }
}

impl Site<'_> {
    /// The file that is written, where it is one.
    pub(super) fn file(&self) -> PathBuf {
        self.dir.join("file")
    }
}

impl Sample {
    /// Of the preparation, of the writing, of the syncing.
    pub(super) fn new(preparation: u64, write: Span, sync: Span) -> Sample {
        Sample {
            preparation: preparation as f64,
            write: write.time.as_nanos() as f64,
            sync: sync.time.as_nanos() as f64,
            cpu: (write.cpu + sync.cpu).as_nanos() as f64,
            allocated: 0.0,
        }
    }

    /// The result of a process of its own that does `work`.
    pub(super) fn told_by(
        limit: Duration,
        work: impl FnOnce() -> Result<Sample>,
    ) -> Result<Sample> {
        let told = process::figures(limit, 5, || {
            let Sample { preparation, write, sync, cpu, allocated } = work()?;
            Ok(vec![preparation, write, sync, cpu, allocated])
        })?;
        let [preparation, write, sync, cpu, allocated] = told[..] else {
            return Err(Error::failed("a process did not tell all of its figures"));
        };
        Ok(Sample { preparation, write, sync, cpu, allocated })
    }
}

/// The ways of `entries`, each once.
pub(super) fn ways(entries: &[Entry]) -> Vec<&str> {
    let mut ways: Vec<&str> = Vec::new();
    for entry in entries {
        if !ways.contains(&entry.way()) {
            ways.push(entry.way());
        }
    }
    ways
}
