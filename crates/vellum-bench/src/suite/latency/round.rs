//! One way, one load, one time: append on schedule, read along, and check.

use std::hint;
use std::num::NonZero;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use super::channel::{Channel, Follower};
use super::timeline::Timeline;
use super::{LatencyWay, Load, ReaderKind};
use crate::error::{Error, Result};
use crate::histogram::{Histogram, Histograms};
use crate::process::{Runner, now_ns, race};
use crate::record::{Records, process_of, sequence_of};
use crate::setting::Setting;
use crate::shared::Shared;
use crate::suite::foreign::{Foreign, Job, Part, Prepared};
use crate::suite::settle;
use crate::verify::Ledger;

/// From the start of the first process until the first record is due: all have started by then.
const LEAD_NS: u64 = 5_000_000;
/// The same where programs of others are told by a pipe.
const FOREIGN_LEAD_NS: u64 = 50_000_000;
/// How long a reader sleeps at most before it checks whether the writers have ended.
const PATIENCE: Duration = Duration::from_millis(100);
/// How often a reader that has nothing to read looks whether the writers have ended.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// How long a reader waits for the last records.
const LAST_NS: u64 = 10_000_000_000;
/// A way that is so many times slower than the load asks for fails.
const SLOWER_MAX: u32 = 20;
/// Beside that.
const GRACE: Duration = Duration::from_secs(60);

/// The result of a round.
pub(super) struct Sample {
    /// From due to returned; in a load without a reader, to durable.
    pub(super) returned: Histogram,
    /// The same without the stops between appends; `None` of other systems, which do not tell.
    pub(super) above_floor: Option<Histogram>,
    /// From due to seen.
    pub(super) seen: Option<Histogram>,
    /// From the first record due until the last has returned.
    pub(super) wall_ns: u64,
}

/// Words that all processes of a round share.
pub(super) struct Board {
    /// When the first record is due, on the monotonic clock; set by the first that starts.
    start: Shared<AtomicU64>,
    /// Writers that have appended all their records, and when the last did.
    ended: Shared<AtomicU64>,
    /// Of each writer; the reader's behind them; then above the floor of each writer.
    latencies: Histograms,
}

/// Appends with all writers, reads along, and checks the records that came. `dir` is empty.
pub(super) fn measure(
    way: LatencyWay,
    load: &Load,
    options: &vellum::Options,
    dir: &Path,
) -> Result<Sample> {
    let setting = Setting::new(load.writers, load.records(), load.bytes);
    let channel = Channel::new(way, options, dir, &setting)?;
    let board = Board::new(load)?;
    settle(dir)?;
    let race = race(load.processes(), load.limit(), &|runner| match load.reader {
        Some(reader) if runner.index() == load.writers => match way {
            LatencyWay::Floor => stand_by(runner, load, reader, &board),
            _ => read(runner, load, reader, &setting, &channel, &board),
        },
        _ => append(runner, load, &channel, &board),
    })?;
    if load.reader.is_none() {
        let mut ledger = Ledger::new(&setting);
        channel.read_back(&mut |record| ledger.enter(record))?;
        ledger.close()?;
    }
    debug_assert!(race.acknowledged.iter().take(load.writers as usize).all(|n| *n > 0));
    let sample = board.sample(load);
    let seen = sample.seen.filter(|_| way != LatencyWay::Floor);
    Ok(Sample { above_floor: Some(board.above_floor(load)), seen, ..sample })
}

/// The same by the programs of another system, which check what they read.
pub(super) fn measure_foreign(other: &dyn Foreign, load: &Load, dir: &Path) -> Result<Sample> {
    let job = Job {
        rate: Some(load.rate),
        writers_spin: load.spins(),
        reader_spins: load.reader == Some(ReaderKind::Spinning),
        ..Job::new(dir, load.writers, load.records(), load.bytes)
    };
    let prepared = other.prepare(&job)?;
    let board = Board::new(load)?;
    settle(dir)?;
    race(load.processes(), load.limit(), &|runner| {
        follow_schedule(runner, load, &*prepared, &board)
    })?;
    Ok(board.sample(load))
}

/// The work of a process that has another program append or read.
fn follow_schedule(
    runner: &Runner<'_>,
    load: &Load,
    prepared: &dyn Prepared,
    board: &Board,
) -> Result<()> {
    let index = runner.index();
    let is_reader = index == load.writers;
    // A program that is started from here has it, too.
    let _ = rustix::thread::set_current_timer_slack(NonZero::new(1));
    let mut program = prepared.start(if is_reader { Part::Reader } else { Part::Writer(index) })?;
    let standing = runner.stand_ready()?;
    program.run(board.start_ns(FOREIGN_LEAD_NS))?;
    if !is_reader {
        board.ended[1].fetch_max(now_ns(), Ordering::Relaxed);
    }
    let latencies = program.latencies()?;
    let wanted = load.records() * u64::from(if is_reader { load.writers } else { 1 });
    if latencies.len() as u64 != wanted {
        return Err(Error::failed(format!("{} of {wanted} records were timed", latencies.len())));
    }
    latencies.iter().for_each(|nanos| board.latencies.count(index as usize, *nanos));
    runner.finish(standing, wanted)
}

impl Load {
    fn processes(&self) -> u32 {
        self.writers + u32::from(self.reader.is_some())
    }

    /// After which a way has failed.
    fn limit(&self) -> Duration {
        self.duration * SLOWER_MAX + GRACE
    }
}

impl Board {
    pub(super) fn new(load: &Load) -> Result<Board> {
        let latencies = Histograms::new(2 * load.writers as usize + 1)?;
        Ok(Board { start: Shared::new(1)?, ended: Shared::new(2)?, latencies })
    }

    /// The counts, when all processes have ended.
    pub(super) fn sample(&self, load: &Load) -> Sample {
        let writers = load.writers as usize;
        let start = self.start[0].load(Ordering::Relaxed);
        Sample {
            returned: self.latencies.sum(0..writers),
            above_floor: None,
            seen: load.reader.map(|_| self.latencies.sum([writers])),
            wall_ns: self.ended[1].load(Ordering::Relaxed).saturating_sub(start),
        }
    }

    pub(super) fn above_floor(&self, load: &Load) -> Histogram {
        let writers = load.writers as usize;
        self.latencies.sum(writers + 1..=2 * writers)
    }

    /// How many records of `writer` were timed so far.
    #[cfg(test)]
    pub(super) fn latencies_of(&self, writer: usize) -> u64 {
        self.latencies.sum([writer]).count()
    }

    /// When the first record is due.
    pub(super) fn start_ns(&self, lead_ns: u64) -> u64 {
        let mine = now_ns() + lead_ns;
        match self.start[0].compare_exchange(0, mine, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => mine,
            Err(start) => start,
        }
    }
}

/// The work of each writer.
pub(super) fn append(
    runner: &Runner<'_>,
    load: &Load,
    channel: &Channel,
    board: &Board,
) -> Result<()> {
    let index = runner.index();
    let (own, above_floor) = (index as usize, (index + load.writers) as usize + 1);
    let mut writer = channel.writer(index)?;
    let mut records = Records::new(index, load.bytes);
    let (count, spins) = (load.records(), load.spins());
    let _ = rustix::thread::set_current_timer_slack(NonZero::new(1));
    let standing = runner.stand_ready()?;
    let start = board.start_ns(LEAD_NS);
    let mut timeline = Timeline::default();
    for sequence in 0..count {
        let due = start + load.due_ns(index, sequence);
        let record = records.next_record();
        let begun = wait_until(due, spins);
        writer.append(record)?;
        let ended = now_ns();
        board.latencies.count(own, ended.saturating_sub(due));
        board.latencies.count(above_floor, timeline.above_floor(due, begun, ended));
    }
    board.ended[1].fetch_max(now_ns(), Ordering::Relaxed);
    // Pairs with the load in `read`.
    board.ended[0].fetch_add(1, Ordering::Release);
    runner.finish(standing, count)
}

/// Returns the time when `due` is reached; sleeps until then where others need the core.
fn wait_until(due: u64, spins: bool) -> u64 {
    loop {
        let now = now_ns();
        if now >= due {
            return now;
        }
        match spins {
            true => hint::spin_loop(),
            false => thread::sleep(Duration::from_nanos(due - now)),
        }
    }
}

/// The work of a reader without anything to read: it keeps its core as busy as it would.
fn stand_by(runner: &Runner<'_>, load: &Load, reader: ReaderKind, board: &Board) -> Result<()> {
    let standing = runner.stand_ready()?;
    while board.ended[0].load(Ordering::Acquire) < u64::from(load.writers) {
        match reader {
            ReaderKind::Spinning => hint::spin_loop(),
            ReaderKind::Sleeping => thread::sleep(LOOK_AGAIN),
        }
    }
    runner.finish(standing, 0)
}

/// The work of the reader.
fn read(
    runner: &Runner<'_>,
    load: &Load,
    reader: ReaderKind,
    setting: &Setting,
    channel: &Channel,
    board: &Board,
) -> Result<()> {
    let mut follower = channel.follower()?;
    let mut ledger = Ledger::new(setting);
    let (index, total) = (runner.index() as usize, setting.total_records());
    let patience = (reader == ReaderKind::Sleeping).then_some(PATIENCE);
    let _ = rustix::thread::set_current_timer_slack(NonZero::new(1));
    let standing = runner.stand_ready()?;
    let start = board.start_ns(LEAD_NS);
    let mut seen = 0;
    let mut visit = |record: &[u8]| {
        let now = now_ns();
        if let (Some(process), Some(sequence)) = (process_of(record), sequence_of(record)) {
            let due = start + load.due_ns(process, sequence);
            board.latencies.count(index, now.saturating_sub(due));
        }
        ledger.enter(record);
        seen += 1;
        seen < total
    };
    follow(&mut *follower, patience, load, board, &mut visit)?;
    ledger.close()?;
    runner.finish(standing, seen)
}

/// Takes records until `visit` wants no more, or none have come long after the writers' end.
fn follow(
    follower: &mut dyn Follower,
    patience: Option<Duration>,
    load: &Load,
    board: &Board,
    visit: &mut dyn FnMut(&[u8]) -> bool,
) -> Result<()> {
    let (mut wants_more, mut last) = (true, now_ns());
    while wants_more {
        let mut has_some = false;
        follower.take(patience, &mut |record| {
            has_some = true;
            wants_more &= visit(record);
        })?;
        if has_some {
            last = now_ns();
        }
        let is_over = board.ended[0].load(Ordering::Acquire) == u64::from(load.writers);
        if is_over && !has_some && now_ns() - last > LAST_NS {
            // The ledger names the missing records.
            return Ok(());
        }
        hint::spin_loop();
    }
    Ok(())
}

impl Sample {
    /// Records that came in a second.
    pub(super) fn rate(&self) -> f64 {
        self.returned.count() as f64 / (self.wall_ns.max(1) as f64 / 1e9)
    }
}
