//! Table `parallel`: several threads write one file; beside it, one file for each of them.
//!
//! The baseline is the simplest program: a file for each thread, empty at first, through the page
//! cache.

use std::ops::Range;

use super::cache::Cache;
use super::clock::{once, together};
use super::config::{Config, Table};
use super::entry::{Entry, Job, Sample, Site};
use super::files::Files;
use super::mapped::shares;
use super::ring::Ring;
use super::source::Source;
use super::state::State;
use super::vellum_parallel::VellumParallel;
use crate::bytes::size;
use crate::error::{Context, Result};

/// How many writes a ring has under way.
const DEPTHS: [usize; 2] = [8, 32];

/// Which bytes of one file a thread writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Split {
    /// Every so many pieces: threads write side by side.
    Interleaved,
    /// A contiguous share.
    Shares,
}

impl Split {
    /// The offsets of the thread's pieces.
    fn offsets(self, site: &Site<'_>, threads: u32, thread: u32, piece: usize) -> Pieces {
        match self {
            Split::Interleaved => {
                let first = piece as u64 * u64::from(thread);
                Pieces { range: first..site.bytes, step: piece * threads as usize }
            }
            Split::Shares => {
                let (first, len) = shares(site.bytes, threads)[thread as usize];
                Pieces { range: first..first + len, step: piece }
            }
        }
    }
}

/// A thread's pieces, one in each step.
struct Pieces {
    range: Range<u64>,
    step: usize,
}

/// One file, which several threads write.
struct OneFile {
    split: Split,
    cache: Cache,
    state: State,
    threads: u32,
    piece_bytes: usize,
}

impl Job for OneFile {
    fn run(&self, site: &Site<'_>) -> Result<Sample> {
        let (made, preparation) = self.state.make(&site.file(), site.bytes)?;
        let file = self.cache.open(&site.file()).trying("open the file")?;
        let file = &file;
        let workers = (0..self.threads).map(|thread| {
            let mut source = Source::new(self.piece_bytes, site.round);
            let Pieces { range, step } =
                self.split.offsets(site, self.threads, thread, self.piece_bytes);
            move || {
                for offset in range.clone().step_by(step) {
                    let len = (range.end - offset).min(self.piece_bytes as u64) as usize;
                    let written = self.cache.write_at(file, source.piece(offset, len), offset);
                    written.trying("pwrite")?;
                }
                Ok(())
            }
        });
        let write = together(workers.collect())?;
        let sync = once(|| made.sync_all().trying("fsync"))?;
        Ok(Sample::new(preparation, write, sync))
    }
}

/// The cases of the table.
pub(super) fn entries(config: &Config) -> Vec<Entry> {
    let mut entries = Vec::new();
    for threads in config.threads.iter().copied() {
        for cache in [Cache::Buffered, Cache::Direct] {
            for state in states(config, cache) {
                entries.push(files(config, cache, state, threads));
            }
        }
        for cache in [Cache::Buffered, Cache::Direct, Cache::Dropped] {
            for state in states(config, cache) {
                entries.push(one_file(config, Split::Interleaved, cache, state, threads));
            }
        }
        // The share of one thread is the file.
        for cache in [Cache::Buffered, Cache::Direct].into_iter().filter(|_| threads > 1) {
            for state in states(config, cache) {
                entries.push(one_file(config, Split::Shares, cache, state, threads));
            }
        }
        entries.extend([false, true].map(|sync| vellum(config, sync, threads)));
    }
    for depth in DEPTHS {
        entries.extend(states(config, Cache::Direct).map(|state| ring(config, depth, state)));
    }
    entries
}

/// Writes past the cache meet the same blocks in a sparse file as in an empty one, and pages that
/// do not stay there need one case.
fn states(config: &Config, cache: Cache) -> impl Iterator<Item = State> {
    let is_asked = move |state: &State| match cache {
        Cache::Buffered => true,
        Cache::Direct => *state != State::Sparse,
        Cache::Dropped => *state == State::Emptied,
    };
    config.states.clone().into_iter().filter(is_asked)
}

fn one_file(config: &Config, split: Split, cache: Cache, state: State, threads: u32) -> Entry {
    let piece_bytes = config.piece_bytes as usize;
    let job = OneFile { split, cache, state, threads, piece_bytes };
    let call = if split == Split::Shares { "pwrite shares" } else { "pwrite" };
    case(config, job, &format!("{call}{}", cache.suffix()), state).threads(threads)
}

fn files(config: &Config, cache: Cache, state: State, threads: u32) -> Entry {
    let piece_bytes = config.piece_bytes as usize;
    let job = Files { cache, state, threads, piece_bytes };
    let case = case(config, job, &format!("files{}", cache.suffix()), state);
    let is_baseline = cache == Cache::Buffered && Some(&state) == config.states.first();
    Entry { is_baseline, ..case.threads(threads) }
}

fn ring(config: &Config, depth: usize, state: State) -> Entry {
    let job = Ring { depth, state, piece_bytes: config.piece_bytes as usize };
    case(config, job, &format!("io_uring depth {depth}"), state).threads(1)
}

fn vellum(config: &Config, sync: bool, threads: u32) -> Entry {
    let job = VellumParallel { sync, threads, piece_bytes: config.piece_bytes as usize };
    let way = if sync { "vellum-parallel sync" } else { "vellum-parallel" };
    case(config, job, way, "prepared").threads(threads)
}

fn case(config: &Config, job: impl Job + 'static, way: &str, state: impl ToString) -> Entry {
    Entry::new(Table::Parallel, job)
        .key("way", way)
        .key("state", state)
        .key("chunk", size(config.piece_bytes))
}
