//! Many processes on one log: the time of each to join, its memory, and their appends together.
//!
//! ```text
//! first race     one opens after the other │ gate │ all append
//! second race    all stand ready │ gate │ all open at once, and stay until the last is in
//! ```

use std::hint::black_box;
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use rustix::io::Errno;
use rustix::thread::futex;
use rustix::time::Timespec;
use zerocopy::FromZeros;

use super::taken::Taken;
use super::{Entry, Figure, LIMIT, RECORD_BYTES, timed};
use crate::error::{Context, Result};
use crate::process::{Runner, race};
use crate::record::Records;
use crate::setting::Setting;
use crate::shared::Shared;
use crate::stats::Spread;
use crate::suite::append::round::verify;
use crate::suite::settle;
use crate::ways::Prepared;

/// As many as can have a log open.
pub(super) const PROCESSES_MAX: u32 = 1000;
/// No process waits longer for its turn.
const TURN_LIMIT: Duration = Duration::from_secs(60);

pub(super) const FIGURES: [Figure; 8] = [
    Figure::steady("open", "us"),
    Figure::steady("open, the last", "us"),
    Figure::cost("open, all at once", "ms"),
    Figure::cost("append", "ns/record"),
    Figure::steady("look at the end", "ns"),
    Figure::cost("own memory", "KiB"),
    Figure::cost("mapped", "KiB"),
    Figure::cost("descriptors", "per process"),
];

/// The report of one process. Only that process writes, but for `turn`; the parent reads after it
/// has ended.
#[derive(FromZeros)]
#[repr(C, align(128))]
struct Words {
    /// 1 once it may continue. Pairs release with acquire; slept on.
    turn: AtomicU32,
    figures: [AtomicU64; 4],
}

impl Words {
    fn tell(&self, figures: [f64; 4]) {
        for (word, figure) in self.figures.iter().zip(figures) {
            word.store(figure.to_bits(), Ordering::Relaxed);
        }
    }

    fn told(&self, index: usize) -> f64 {
        f64::from_bits(self.figures[index].load(Ordering::Relaxed))
    }

    fn give_turn(&self) -> Result<()> {
        self.turn.store(1, Ordering::Release);
        futex::wake(&self.turn, futex::Flags::empty(), i32::MAX as u32)
            .map(drop)
            .context(|| "wake a process")
    }

    fn wait_for_turn(&self) -> Result<()> {
        let limit = Timespec::try_from(TURN_LIMIT).unwrap_or_default();
        while self.turn.load(Ordering::Acquire) == 0 {
            match futex::wait(&self.turn, futex::Flags::empty(), 0, Some(&limit)) {
                Ok(()) | Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(error).context(|| "wait for a turn"),
            }
        }
        Ok(())
    }
}

pub(super) fn measure(entry: Entry, records: u64, dir: &Path) -> Result<Vec<f64>> {
    let Entry { way, count } = entry;
    let setting = Setting::new(count, (records / u64::from(count)).max(1), RECORD_BYTES);
    let is_log = super::segments::layout(way);
    let prepared = way.way(&vellum::Options::default()).prepare(dir, &setting)?;
    settle(dir)?;
    // One word more than processes: the last one gives its turn to no other.
    let words = Shared::<Words>::new(count as usize + 1)?;
    words[0].give_turn()?;
    let race =
        race(count, LIMIT, &|runner| one_by_one(runner, &setting, prepared.as_ref(), &words))?;
    verify(&setting, prepared.as_ref(), &race)?;
    let look = is_log.map_or(Ok(f64::NAN), |layout| look_at_end(layout, &dir.join("log")))?;
    let all_at_once = storm(count, prepared.as_ref())?;
    let told = |index| words[..count as usize].iter().map(move |word| word.told(index));
    let median = |index| {
        let samples: Vec<f64> = told(index).collect();
        Spread::of(&samples).map_or(f64::NAN, |spread| spread.median)
    };
    Ok(vec![
        median(0) / 1e3,
        told(0).last().unwrap_or(f64::NAN) / 1e3,
        all_at_once / 1e6,
        race.wall_ns as f64 / setting.total_records() as f64,
        look,
        median(1),
        median(2),
        median(3),
    ])
}

/// Opens when its predecessor has opened, and appends when all have.
fn one_by_one(
    runner: &Runner<'_>,
    setting: &Setting,
    prepared: &dyn Prepared,
    words: &[Words],
) -> Result<()> {
    let index = runner.index() as usize;
    let mut records = Records::new(runner.index(), setting.bytes);
    words[index].wait_for_turn()?;
    let before = Taken::now()?;
    let (mut log, open) = timed(|| prepared.open(runner.index()))?;
    words[index + 1].give_turn()?;
    let mut acknowledged = 0;
    let standing = runner.stand_ready()?;
    log.append_all(&mut records, setting.records, &mut acknowledged)?;
    if runner.is_last() {
        log.wait_readable()?;
    }
    runner.finish(standing, acknowledged)?;
    let taken = Taken::now()?.added(before, 1);
    words[index].tell([open, taken.own_kib, taken.mapped_kib, taken.descriptors]);
    Ok(())
}

/// Nanoseconds until all processes have the log open, if all open it at the same time.
fn storm(count: u32, prepared: &dyn Prepared) -> Result<f64> {
    let is_full = Shared::<Words>::new(1)?;
    let race = race(count, LIMIT, &|runner| {
        let standing = runner.stand_ready()?;
        let log = prepared.open(runner.index())?;
        runner.finish(standing, 0)?;
        // Closing would be in the way of processes that still open.
        match runner.is_last() {
            true => is_full[0].give_turn()?,
            false => is_full[0].wait_for_turn()?,
        }
        drop(log);
        Ok(())
    })?;
    Ok(race.wall_ns as f64)
}

/// Nanoseconds that a reader takes to see how far it may read.
fn look_at_end(layout: vellum::Layout, dir: &Path) -> Result<f64> {
    const LOOKS: u32 = 10_000;
    let log = crate::ways::vellum_log::open_read_only(&vellum::Options::default(), layout, dir)?;
    let ((), nanos) = timed(|| {
        for _ in 0..LOOKS {
            black_box(black_box(&log).published());
        }
        Ok(())
    })?;
    Ok(nanos / f64::from(LOOKS))
}
