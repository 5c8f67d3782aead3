//! A case: a way to write a file, in a state, with so many threads.

use std::path::{Path, PathBuf};

use super::clock::Span;
use super::config::{Config, Table};
use super::trouble::Tried;
use crate::error::Result;

/// One of the cases of a table.
pub(super) struct Case {
    pub(super) table: Table,
    /// What tells it from the others, as the report has it.
    pub(super) keys: Vec<(&'static str, String)>,
    pub(super) job: Box<dyn Job>,
    /// With how many threads it writes, and whether others with as many are compared with it.
    pub(super) threads: u32,
    pub(super) is_baseline: bool,
}

/// What is done in a case.
pub(super) trait Job {
    /// Makes the file, writes it and syncs it. Called in a process of its own, which may be killed
    /// by what it tries.
    fn run(&self, site: &Site<'_>) -> Tried<Sample>;

    /// Is all of it there? Called in another process, after that one has ended.
    fn verify(&self, site: &Site<'_>) -> Result<()>;
}

/// Where and what a case writes in one round.
pub(super) struct Site<'a> {
    /// An empty directory.
    pub(super) dir: &'a Path,
    /// Of the file, or of all files together.
    pub(super) bytes: u64,
    pub(super) round: u32,
}

/// What one round of a case took, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sample {
    /// Until the file was ready to be written into.
    pub(super) preparation: u64,
    /// Until the last write returned.
    pub(super) write: u64,
    /// From then until all of it was synced.
    pub(super) sync: u64,
    /// Of the processors' time for writing and syncing; the kernel's own threads are not in it.
    pub(super) cpu: u64,
    /// How many bytes of blocks the file had in the end, in the table `create`.
    pub(super) allocated: u64,
}

impl Case {
    pub(super) fn new(table: Table, job: impl Job + 'static) -> Case {
        let (keys, job) = (Vec::new(), Box::new(job));
        Case { table, keys, job, threads: 1, is_baseline: false }
    }

    /// Adds a key.
    pub(super) fn key(mut self, name: &'static str, value: impl ToString) -> Case {
        self.keys.push((name, value.to_string()));
        self
    }

    /// Adds the number of threads, as a key too.
    pub(super) fn threads(mut self, threads: u32) -> Case {
        self.threads = threads;
        self.key("threads", threads)
    }

    /// All its names, for whoever watches.
    pub(super) fn title(&self) -> String {
        let values = self.keys.iter().map(|(_, value)| value.as_str());
        std::iter::once(self.table.as_str()).chain(values).collect::<Vec<_>>().join(", ")
    }

    fn way(&self) -> &str {
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
            preparation,
            write: write.time.as_nanos() as u64,
            sync: sync.time.as_nanos() as u64,
            cpu: (write.cpu + sync.cpu).as_nanos() as u64,
            allocated: 0,
        }
    }
}

/// The ways that `cases` have, each once.
pub(super) fn ways(cases: &[Case]) -> Vec<&str> {
    let mut ways: Vec<&str> = Vec::new();
    for case in cases {
        if !ways.contains(&case.way()) {
            ways.push(case.way());
        }
    }
    ways
}

/// Leaves only the ways that are asked for.
pub(super) fn select(cases: Vec<Case>, config: &Config) -> Vec<Case> {
    let is_wanted =
        |case: &Case| config.ways.is_empty() || config.ways.iter().any(|way| way == case.way());
    cases.into_iter().filter(is_wanted).collect()
}
