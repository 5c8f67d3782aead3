//! One way, one time: append until the time is over, then verify what is kept.
//!
//! ```text
//! record     0 1 2 … | … | … | …      numbered as they are begun, by all processes together
//! generation    0    | 1 | 2 | 3      so many records each; the oldest go, KEPT stay
//! ```

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use super::book::{Book, SLICES, Tally};
use super::kept::Kept;
use crate::conditions::memory_bytes;
use crate::error::{Context, Error, Result};
use crate::footprint;
use crate::histogram::Histogram;
use crate::process::{Runner, race};
use crate::record::Records;
use crate::setting::Setting;
use crate::suite::settle;
use crate::ways::{Appender, Prepared, Way};

/// So many whole generations are kept beside the one that is appended to.
pub(super) const KEPT: u64 = 4;
/// How often dirty memory is looked at.
const SAMPLE_PAUSE: Duration = Duration::from_millis(10);
/// A writer may be stopped for long when the time is over.
const GRACE: Duration = Duration::from_secs(300);

/// The records to append.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub(super) processes: u32,
    pub(super) bytes: usize,
    pub(super) duration: Duration,
    pub(super) generation_records: u64,
    pub(super) generations: u64,
}

/// The result of a round.
pub(super) struct Sample {
    pub(super) tallies: Vec<Tally>,
    pub(super) slices: Vec<Histogram>,
    pub(super) dirty_bytes: Vec<u64>,
    pub(super) disk_bytes: u64,
    /// How long it took to write out what was left.
    pub(super) sync: Duration,
}

/// The log of a way, cut from behind as it grows.
struct Journal {
    can_trim: bool,
    /// One log, or one for each generation.
    logs: Vec<(PathBuf, Box<dyn Prepared>)>,
}

impl Journal {
    fn new(way: &dyn Way, dir: &Path, load: &Load) -> Result<Journal> {
        let can_trim = way.can_trim();
        let count = if can_trim { 1 } else { load.generations };
        let setting = Setting::new(load.processes, 1, load.bytes);
        let make = |number: u64| {
            let dir = dir.join(number.to_string());
            fs::create_dir(&dir).context(|| format!("make {}", dir.display()))?;
            way.prepare(&dir, &setting).map(|log| (dir, log))
        };
        Ok(Journal { can_trim, logs: (0..count).map(make).collect::<Result<_>>()? })
    }

    fn open(&self, generation: u64, process: u32) -> Result<Box<dyn Appender>> {
        let at = if self.can_trim { 0 } else { generation as usize };
        self.logs[at].1.open(process)
    }

    /// Gives up the generation that is too old when `generation` begins.
    fn cut(&self, generation: u64, book: &Book, appender: &mut dyn Appender) -> Result<()> {
        // Nothing is before the first one, but for records that overtook its first record.
        let Some(oldest @ 1..) = generation.checked_sub(KEPT) else { return Ok(()) };
        if self.can_trim {
            let mark = book.marks[oldest as usize].load(Ordering::Acquire);
            // The writer that began that generation may not have noted yet where.
            let Some(mark) = mark.checked_sub(1) else { return Ok(()) };
            appender.trim(mark)?;
        } else {
            let dir = &self.logs[oldest as usize - 1].0;
            fs::remove_dir_all(dir).context(|| format!("remove {}", dir.display()))?;
        }
        book.removed[0].fetch_max(oldest, Ordering::AcqRel);
        Ok(())
    }

    fn read_back(&self, removed: u64, visit: &mut dyn FnMut(&[u8])) -> Result<()> {
        let skipped = if self.can_trim { 0 } else { removed as usize };
        self.logs.iter().skip(skipped).try_for_each(|(_, log)| log.read_back(visit))
    }
}

/// Appends with all processes and verifies what is there then. `dir` is empty and stays behind with
/// the log in it.
pub(super) fn measure(way: &dyn Way, dir: &Path, load: &Load) -> Result<Sample> {
    let journal = Journal::new(way, dir, load)?;
    let book = Book::new(load.processes, load.generations as usize)?;
    settle(dir)?;
    race(load.processes + 1, load.duration + GRACE, &|runner| {
        if runner.index() == load.processes {
            return watch(runner, load, &book);
        }
        append(runner, load, &journal, &book)
    })?;
    let disk_bytes = footprint::disk_bytes(dir)?;
    let begun = Instant::now();
    settle(dir)?;
    let sync = begun.elapsed();
    verify(load, &journal, &book)?;
    Ok(Sample {
        tallies: book.tallies(),
        slices: (0..SLICES).map(|slice| book.histogram(slice)).collect(),
        dirty_bytes: book.dirty.iter().map(|bytes| bytes.load(Ordering::Relaxed)).collect(),
        disk_bytes,
        sync,
    })
}

/// The work of each writer.
fn append(runner: &Runner<'_>, load: &Load, journal: &Journal, book: &Book) -> Result<()> {
    let mut writer = Writer {
        load,
        journal,
        book,
        process: runner.index(),
        records: Records::new(runner.index(), load.bytes),
        appender: journal.open(0, runner.index())?,
        generation: None,
        tally: Tally::default(),
    };
    let standing = runner.stand_ready()?;
    let result = writer.run();
    let mut tally = writer.tally;
    tally.memory_bytes = peak_memory_bytes();
    book.close(runner.index() as usize, &tally);
    book.ended[0].fetch_add(1, Ordering::AcqRel);
    result.map_err(|error| {
        Error::failed(format!("{error} (after {} acknowledged records)", tally.acknowledged))
    })?;
    runner.finish(standing, tally.acknowledged)
}

struct Writer<'a> {
    load: &'a Load,
    journal: &'a Journal,
    book: &'a Book,
    process: u32,
    records: Records,
    appender: Box<dyn Appender>,
    generation: Option<u64>,
    tally: Tally,
}

impl Writer<'_> {
    /// Appends until the time is over, or the amount.
    fn run(&mut self) -> Result<()> {
        let begun = Instant::now();
        let (mut before, mut stop) = (begun, 0);
        loop {
            let number = self.book.taken[0].fetch_add(1, Ordering::Relaxed);
            if number / self.load.generation_records >= self.load.generations {
                return Ok(());
            }
            self.append(number)?;
            let after = Instant::now();
            let nanos = after.duration_since(before).as_nanos() as u64;
            let slice = self.load.slice(after.duration_since(begun));
            self.book.count(self.process as usize, slice, nanos);
            self.tally.note(nanos, &mut stop);
            before = after;
            if number.is_multiple_of(self.load.generation_records) {
                let generation = number / self.load.generation_records;
                self.journal.cut(generation, self.book, self.appender.as_mut())?;
                before = Instant::now();
                self.tally.note_removal(before.duration_since(after).as_nanos() as u64);
            }
            let elapsed = before.duration_since(begun);
            self.tally.nanos = elapsed.as_nanos() as u64;
            if elapsed >= self.load.duration {
                return Ok(());
            }
        }
    }

    /// Appends the record of this number among those of all processes.
    fn append(&mut self, number: u64) -> Result<()> {
        let generation = number / self.load.generation_records;
        if self.generation != Some(generation) {
            if !self.journal.can_trim && generation > 0 {
                self.appender = self.journal.open(generation, self.process)?;
            }
            let sequence = self.tally.acknowledged;
            self.book.start(self.process as usize, generation as usize, sequence);
            self.generation = Some(generation);
        }
        let record = self.records.next_record();
        if !number.is_multiple_of(self.load.generation_records) {
            return self.appender.append(record);
        }
        let mark = self.appender.append_marked(record)?.map_or(0, |mark| mark + 1);
        self.book.marks[generation as usize].store(mark, Ordering::Release);
        Ok(())
    }
}

impl Load {
    /// The slice of time that a record is counted in.
    fn slice(&self, elapsed: Duration) -> usize {
        let slice = elapsed.as_nanos() * SLICES as u128 / self.duration.as_nanos();
        (slice as usize).min(SLICES - 1)
    }
}

/// One more process looks at the dirty memory of the machine until all writers have ended.
fn watch(runner: &Runner<'_>, load: &Load, book: &Book) -> Result<()> {
    let standing = runner.stand_ready()?;
    let begun = Instant::now();
    // A writer that is killed does not tell that it has ended.
    while book.ended[0].load(Ordering::Acquire) < u64::from(load.processes)
        && begun.elapsed() < load.duration
    {
        let bytes = |name| memory_bytes(name).unwrap_or(0);
        let dirty = bytes("Dirty") + bytes("Writeback");
        book.dirty[load.slice(begun.elapsed())].fetch_max(dirty, Ordering::Relaxed);
        thread::sleep(SAMPLE_PAUSE);
    }
    runner.finish(standing, 0)
}

fn verify(load: &Load, journal: &Journal, book: &Book) -> Result<()> {
    let removed = book.removed[0].load(Ordering::Acquire);
    // Where a log was cut, records lie on both sides that were begun at about the same time; a file
    // holds those of one generation, and no others.
    let whole = if journal.can_trim && removed > 0 { removed + 2 } else { removed };
    let kept: Vec<_> = (0..load.processes as usize)
        .map(|process| book.first_since(process, whole as usize)..book.acknowledged(process))
        .collect();
    let mut kept = Kept::new(load.bytes, &kept);
    journal.read_back(removed, &mut |record| kept.enter(record))?;
    kept.close().map_err(|error| Error::failed(format!("read back: {error}")))
}

/// The most memory that this process ever had.
fn peak_memory_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}
