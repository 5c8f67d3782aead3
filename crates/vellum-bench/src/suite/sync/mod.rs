//! Suite `sync`: 5 MiB in pieces of 4 KiB, each synced. The cost of the state of the file and of
//! the way of syncing; also with larger pieces, and several threads.
//!
//! All ways take turns in rounds; the first round is not counted. After each, the file is read back
//! and compared. Cases that this system can't run are reported with the reason.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use clap::builder::ArgPredicate;
use vellum_command::values;

use super::options::{from_words, usual};
use super::write::{Source, stamped};
use super::{Arena, Entrant, Plan, Scope, Suite, check_unique};
use crate::bytes::size;
use crate::error::{Context, Error, Result};
use crate::process::figures;
use crate::report::{Better, Case};
use crate::stats::ratios;

mod ways;
mod writers;

pub use ways::SyncWay;
use writers::Writer;

/// Pieces are multiples of this: a page, and a block of the usual filesystems.
const BLOCK_BYTES: u64 = 4096;
/// More would only wait for one another.
const THREADS_MAX: u32 = 256;
/// For directories, journals and other data of the filesystem.
const SPARE_BYTES: u64 = 64 << 20;
/// A reader of the figures must know it.
const RANGE_WARNING: &str = "sync-file-range promises nothing: it writes neither the metadata of \
                             the file nor the cache of the device";
/// No single measurement may take longer; it may be of many gigabytes.
const LIMIT: Duration = Duration::from_secs(3600);

const EXAMPLES: &str = "\
Examples:
  vellum bench sync --dir /mnt/data --json result.json
  vellum bench sync --fs ext4,xfs,btrfs
  vellum bench sync --cases growing,one-sync --big 10G --rounds 1";

/// 5 MiB in pieces of 4 KiB, each synced: the cost of the state of the file
///
/// A file that grows, one that is written with zeros first, one that is allocated in different
/// ways; several ways to sync; and all at once with a single sync. All take turns in rounds, the
/// first of which is not counted; after each, the file is read back and compared. Times are
/// compared with the file that grows, in the same round: below 1 is faster. Every combination of
/// --piece and --threads is a table. Cases that this system can't run are reported with the reason.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = EXAMPLES,
    mut_arg("rounds", |option| usual(option, "5", "2")),
    mut_arg("quick", |option| option.help("1 MiB and two rounds, as far as nothing else is asked for")),
)]
#[non_exhaustive]
pub struct Config {
    /// Which ways: growing, overwrite, fallocate, fallocate-zero-range, keep-size, write-zeroes,
    /// fdatasync, o-sync, o-dsync, rwf-dsync, o-direct, o-direct-dsync, io-uring-fdatasync,
    /// mmap-msync, sync-file-range, one-write, one-sync [default: all]
    #[arg(id = "cases", long, value_name = "NAMES", value_delimiter = ',')]
    #[arg(default_values_t = SyncWay::ALL, hide_default_value = true)]
    pub ways: Vec<SyncWay>,
    /// How much is written
    #[arg(long, value_name = "BYTES", value_parser = values::bytes)]
    #[arg(default_value = "5MiB", default_value_if("quick", ArgPredicate::IsPresent, "1MiB"))]
    pub bytes: u64,
    /// Write so much as well, in pieces with a single sync, as 10G
    #[arg(id = "big", long, value_name = "BYTES", value_parser = values::bytes)]
    pub big_bytes: Option<u64>,
    /// How many bytes are synced at a time, as 4K,64K: multiples of 4096
    #[arg(id = "piece", long, value_name = "BYTES", value_delimiter = ',')]
    #[arg(value_parser = values::bytes, default_value = "4096")]
    pub pieces: Vec<u64>,
    /// How many threads write, each a share of the file
    #[arg(long, value_name = "COUNTS", value_delimiter = ',', default_value = "1")]
    pub threads: Vec<u32>,
    /// Where, and how many rounds.
    #[command(flatten)]
    pub scope: Scope,
}

impl Config {
    /// All ways, five rounds, in `directory`.
    pub fn new(directory: impl Into<PathBuf>) -> Config {
        from_words(&[], directory)
    }

    /// The same with 1 MiB and two rounds: seconds.
    pub fn quick(directory: impl Into<PathBuf>) -> Config {
        from_words(&["--quick"], directory)
    }

    fn check(&self) -> Result<()> {
        if self.ways.is_empty() || self.pieces.is_empty() || self.threads.is_empty() {
            return Err(Error::invalid("at least one way, piece and count of threads is needed"));
        }
        check_unique(&self.ways, "way")?;
        check_unique(&self.pieces, "piece")?;
        check_unique(&self.threads, "count of threads")?;
        self.cells().iter().try_for_each(|cell| {
            cell.check()?;
            let amounts = [Some(self.bytes), self.big_bytes];
            amounts.into_iter().flatten().try_for_each(|bytes| cell.check_bytes(bytes))
        })
    }

    /// Every combination of the lists.
    fn cells(&self) -> Vec<Cell> {
        let cell = |&piece_bytes: &u64| {
            self.threads.iter().map(move |&threads| Cell { piece_bytes, threads })
        };
        self.pieces.iter().flat_map(cell).collect()
    }

    /// The files that are written in a cell: each way's, and a big one.
    fn files(&self, cell: Cell) -> Vec<Pieces> {
        let file = |way, bytes, is_big| Pieces { way, cell, bytes, is_big };
        let usual = self.ways.iter().map(|way| file(*way, self.bytes, false));
        let big = self.big_bytes.map(|bytes| file(SyncWay::OneSync, bytes, true));
        usual.chain(big).collect()
    }

    fn contest(&self, cell: Cell, arena: &mut Arena<'_>) -> Result<Vec<Case>> {
        let mut entrants: Vec<Entrant<Pieces, f64>> = Vec::new();
        for file in self.files(cell) {
            let fitted = file.fitted(arena.place.usable_bytes());
            if fitted.bytes < file.bytes {
                let (place, size) = (arena.place.filesystem, size(fitted.bytes));
                arena.warn(format!("{place}: {size} are written, no more have room"));
            }
            if file.way == SyncWay::SyncFileRange {
                arena.warn(RANGE_WARNING.to_string());
            }
            let probe = Pieces { bytes: cell.row_bytes(), ..file };
            let probed = arena.aside(|dir| probe.write(dir, 0))?;
            entrants.push(Entrant::new(file.name(), fitted, probed.map(drop)));
        }
        arena.rounds(&mut entrants, |file, turn| {
            // The warm-up of a big file would take long, and its effect is small beside it.
            if file.is_big && turn.round == 0 { Ok(0.0) } else { file.write(turn.dir, turn.round) }
        })?;
        let growing = entrants.iter().find(|entrant| entrant.way.way == SyncWay::Growing);
        let growing = growing.map_or(&[][..], |entrant| entrant.samples());
        Ok(entrants.iter().map(|entrant| case(entrant, growing, arena)).collect())
    }
}

impl Suite for Config {
    fn name(&self) -> &'static str {
        "sync"
    }

    fn scope(&self) -> &Scope {
        &self.scope
    }

    fn scope_mut(&mut self) -> &mut Scope {
        &mut self.scope
    }

    fn plan(&self) -> Result<Plan<'_>> {
        self.check()?;
        let bytes = self.bytes.max(self.big_bytes.unwrap_or(0)) + SPARE_BYTES;
        let cells = self.cells();
        let turns = cells.iter().map(|cell| self.files(*cell).len()).sum();
        Ok(Plan::new(bytes, turns, move |arena: &mut Arena<'_>| {
            let cases = cells.iter().map(|cell| self.contest(*cell, arena));
            cases.collect::<Result<Vec<_>>>().map(|cases| cases.concat())
        }))
    }
}

/// Conditions that all ways of a table have in common.
#[derive(Clone, Copy)]
struct Cell {
    piece_bytes: u64,
    threads: u32,
}

impl Cell {
    /// One piece of each thread.
    fn row_bytes(self) -> u64 {
        self.piece_bytes * u64::from(self.threads)
    }

    fn check(self) -> Result<()> {
        let Cell { piece_bytes, threads } = self;
        if piece_bytes == 0 || !piece_bytes.is_multiple_of(BLOCK_BYTES) {
            return Err(Error::invalid(format!(
                "pieces of {piece_bytes} bytes: they must be multiples of {BLOCK_BYTES}"
            )));
        }
        if !(1..=THREADS_MAX).contains(&threads) {
            return Err(Error::invalid(format!(
                "{threads} threads: from 1 to {THREADS_MAX} can write"
            )));
        }
        Ok(())
    }

    fn check_bytes(self, bytes: u64) -> Result<()> {
        if bytes > 0 && bytes.is_multiple_of(self.row_bytes()) {
            return Ok(());
        }
        let Cell { piece_bytes, threads } = self;
        let each = if threads == 1 { String::new() } else { format!(" by {threads} threads") };
        let row = self.row_bytes();
        Err(Error::invalid(format!(
            "{bytes} bytes can't be written in pieces of {piece_bytes}{each}: a multiple of {row} \
             can"
        )))
    }
}

/// A file that is written in pieces, in one way.
#[derive(Clone, Copy)]
struct Pieces {
    way: SyncWay,
    cell: Cell,
    bytes: u64,
    is_big: bool,
}

impl Pieces {
    /// The same with as much as has room: the same number of pieces for each thread, at least one.
    fn fitted(self, room: u64) -> Pieces {
        let row = self.cell.row_bytes();
        Pieces { bytes: self.bytes.min(room / row * row).max(row), ..self }
    }

    /// Of its table.
    fn title(self) -> String {
        let Cell { piece_bytes, threads } = self.cell;
        let by = if threads == 1 { String::new() } else { format!(", {threads} threads") };
        format!("{} in pieces of {}{by}", size(self.bytes), size(piece_bytes))
    }

    fn name(self) -> String {
        let Cell { piece_bytes, threads } = self.cell;
        format!("{} {}, {} pieces, {threads} threads", self.bytes, self.way, size(piece_bytes))
    }

    /// Milliseconds of one round, verified. In a process of its own: where a mapped file has no
    /// room, or its filesystem does not come along, that is killed.
    fn write(self, dir: &Path, round: u32) -> Result<f64> {
        let path = dir.join("file");
        let told = figures(LIMIT, 1, || {
            let millis = self.write_to(&path, round)?;
            stamped(&path, 0, self.bytes, round)?;
            Ok(vec![millis])
        });
        told.map(|millis| millis[0])
    }

    /// Writes all pieces and returns how many milliseconds it took.
    fn write_to(self, path: &Path, round: u32) -> Result<f64> {
        let what = format!("write pieces, {}", self.way);
        self.way.prepare(path, self.bytes).trying(&what)?;
        let shares = (0..u64::from(self.cell.threads)).map(|index| self.share(index, path, round));
        let shares = shares.collect::<Result<Vec<_>>>().and_then(timed);
        shares.map(|taken| taken.as_secs_f64() * 1e3).map_err(|error| error.within(&what))
    }

    /// The bytes that one thread writes.
    fn share(self, index: u64, path: &Path, round: u32) -> Result<Share> {
        let len = self.bytes / u64::from(self.cell.threads);
        let piece_bytes = if self.way == SyncWay::OneWrite { len } else { self.cell.piece_bytes };
        let piece_bytes = piece_bytes as usize;
        Ok(Share {
            writer: self.way.open(path, self.bytes, piece_bytes)?,
            source: Source::new(piece_bytes, round),
            range: index * len..(index + 1) * len,
            piece_bytes,
            syncs_once: self.way.syncs_once(),
        })
    }

    fn syncs(self) -> u64 {
        let Cell { piece_bytes, threads } = self.cell;
        if self.way.syncs_once() { threads.into() } else { self.bytes / piece_bytes }
    }
}

/// The part of the file that one thread writes.
struct Share {
    writer: Box<dyn Writer>,
    source: Source,
    range: Range<u64>,
    piece_bytes: usize,
    syncs_once: bool,
}

impl Share {
    fn write(&mut self) -> Result<()> {
        for offset in self.range.clone().step_by(self.piece_bytes) {
            self.writer.write(self.source.piece(offset, self.piece_bytes), offset)?;
        }
        if self.syncs_once { self.writer.sync() } else { Ok(()) }
    }
}

/// All shares at the same time, each by a thread of its own: from the start of the first thread to
/// the end of the last. The clock of a thread that waited for them would start late where there are
/// fewer cores than threads.
fn timed(mut shares: Vec<Share>) -> Result<Duration> {
    let gate = &Barrier::new(shares.len());
    let spans = thread::scope(|scope| {
        let threads = shares.iter_mut().map(|share| {
            scope.spawn(move || {
                gate.wait();
                let begun = Instant::now();
                share.write().map(|()| (begun, Instant::now()))
            })
        });
        let threads: Vec<_> = threads.collect();
        let joined = |thread: thread::ScopedJoinHandle<'_, Result<_>>| {
            thread.join().unwrap_or_else(|_| Err(Error::failed("a thread panicked")))
        };
        threads.into_iter().map(joined).collect::<Result<Vec<_>>>()
    })?;
    let (begun, ended): (Vec<_>, Vec<_>) = spans.into_iter().unzip();
    let both = begun.into_iter().min().zip(ended.into_iter().max());
    Ok(both.map_or(Duration::ZERO, |(begun, ended)| ended - begun))
}

/// `growing` has the times of that way, round by round. Another amount can't be compared with it,
/// and has a table of its own.
fn case(entrant: &Entrant<Pieces, f64>, growing: &[f64], arena: &Arena<'_>) -> Case {
    let file = entrant.way;
    let growing = if file.is_big { &[] } else { growing };
    let bytes = file.bytes as f64;
    let case = arena
        .case(file.title())
        .key("bytes", file.bytes)
        .key("piece bytes", file.cell.piece_bytes)
        .key("threads", file.cell.threads)
        .key("syncs", file.syncs())
        .key("case", file.way)
        .metric("time", "ms", Better::Lower, entrant.samples().to_vec())
        .metric("time against growing", "x", Better::Lower, ratios(entrant.samples(), growing))
        .metric("throughput", "GB/s", Better::Neither, entrant.figures(|ms| bytes / ms / 1e6));
    entrant.case(case)
}

#[cfg(test)]
mod tests;
