//! The cost of a cache line that two cores want, and of appends on one core and on two: the model
//! in `docs/benchmarks.md` is fitted to these numbers.
//!
//! Each process is bound to a core of its own.

use std::hint::spin_loop;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use zerocopy::FromZeros;

use super::{Arena, Entrant, LIMIT};
use crate::error::{Context, Error, Result};
use crate::process::{Runner, race};
use crate::report::{Better, Case};
use crate::setting::Setting;
use crate::shared::Shared;
use crate::suite::append::round::{append, verify};
use crate::suite::settle;
use crate::ways::WayName;

/// How often the line goes from one core to the other and back.
const TRIPS: u64 = 200_000;
/// The wait of a writer that lost the tail word, in the library.
const BACK_OFF_SPINS: u64 = 1024;
const RECORDS: u64 = 300_000;

/// A word with two cache lines to itself.
#[derive(FromZeros)]
#[repr(C, align(128))]
struct Line {
    word: AtomicU64,
}

/// The timed operation.
#[derive(Clone, Copy)]
enum Test {
    /// Two cores hand a line to each other: each waits for the other's number.
    Handover,
    /// So many cores add to one word by compare-exchange, and wait for nothing.
    Exchange { cores: u32 },
    /// The pause of a writer that lost the tail word.
    BackOff,
    /// So many processes append records of so many bytes to one log.
    Append { way: WayName, bytes: usize, cores: u32 },
}

use WayName::{VellumFramed, VellumText};

const TESTS: [Test; 12] = [
    Test::Handover,
    Test::Exchange { cores: 1 },
    Test::Exchange { cores: 2 },
    Test::BackOff,
    Test::Append { way: VellumText, bytes: 1, cores: 1 },
    Test::Append { way: VellumText, bytes: 1, cores: 2 },
    Test::Append { way: VellumText, bytes: 128, cores: 1 },
    Test::Append { way: VellumText, bytes: 128, cores: 2 },
    Test::Append { way: VellumFramed, bytes: 1, cores: 1 },
    Test::Append { way: VellumFramed, bytes: 1, cores: 2 },
    Test::Append { way: VellumFramed, bytes: 128, cores: 1 },
    Test::Append { way: VellumFramed, bytes: 128, cores: 2 },
];

pub(super) const TURNS: usize = TESTS.len();

pub(super) fn contest(arena: &mut Arena<'_>) -> Result<Vec<Case>> {
    let cores = cores()?;
    let entrant =
        |test: Test| Entrant::new(format!("line: {}", test.name()), test, test.probe(&cores));
    let mut entrants: Vec<Entrant<Test, f64>> = TESTS.into_iter().map(entrant).collect();
    arena.rounds(&mut entrants, |test, turn| test.measure(&cores, turn.dir))?;
    let case = |entrant: &Entrant<Test, f64>| {
        let case = arena
            .case(super::ScaleTable::Line.title())
            .key("way", entrant.way.name())
            .key("cores", entrant.way.cores())
            // They are not there to beat each other.
            .metric("time", "ns", Better::Neither, entrant.samples().to_vec());
        entrant.case(case)
    };
    Ok(entrants.iter().map(case).collect())
}

impl Test {
    fn name(self) -> String {
        match self {
            Test::Handover => "hand-over of a line".into(),
            Test::Exchange { .. } => "compare-exchange".into(),
            Test::BackOff => "back-off".into(),
            Test::Append { way, bytes, .. } => format!("{way}, {bytes} B"),
        }
    }

    fn cores(self) -> u32 {
        match self {
            Test::Handover => 2,
            Test::BackOff => 1,
            Test::Exchange { cores } | Test::Append { cores, .. } => cores,
        }
    }

    fn probe(self, cores: &[usize]) -> Result<()> {
        let (needed, there) = (self.cores(), cores.len());
        if needed as usize <= there {
            return Ok(());
        }
        Err(Error::unsupported(format!("{needed} cores are needed, and this process has {there}")))
    }

    /// Nanoseconds of one hand-over, exchange, pause or append.
    fn measure(self, cores: &[usize], dir: &Path) -> Result<f64> {
        match self {
            Test::Handover => {
                timed_race(2, cores, 2 * TRIPS, &|index, line| hand_over(&line.word, index))
            }
            Test::Exchange { cores: count } => {
                let work = |_, line: &Line| exchange(&line.word, TRIPS);
                timed_race(count, cores, u64::from(count) * TRIPS, &work)
            }
            Test::BackOff => {
                let pause = |_, _: &Line| (0..BACK_OFF_SPINS * 1000).for_each(|_| spin_loop());
                timed_race(1, cores, 1000, &pause)
            }
            Test::Append { way, bytes, cores: count } => {
                append_bound(way, Setting::new(count, RECORDS, bytes), cores, dir)
            }
        }
    }
}

/// The cores that this process may run on.
fn cores() -> Result<Vec<usize>> {
    let set = sched_getaffinity(None).context(|| "ask for the cores of this process")?;
    Ok((0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect())
}

/// Binds the calling process to one of `cores`.
fn bind(runner: &Runner<'_>, cores: &[usize]) -> Result<()> {
    let mut set = CpuSet::new();
    set.set(cores[runner.index() as usize]);
    sched_setaffinity(None, &set).context(|| "bind a process to a core")
}

/// So many processes do `work` at the same time. Returns the nanoseconds by `operations`.
fn timed_race(
    count: u32,
    cores: &[usize],
    operations: u64,
    work: &dyn Fn(u64, &Line),
) -> Result<f64> {
    let lines = Shared::<Line>::new(1)?;
    let race = race(count, LIMIT, &|runner| {
        bind(runner, cores)?;
        let standing = runner.stand_ready()?;
        work(u64::from(runner.index()), &lines[0]);
        runner.finish(standing, 0)
    })?;
    Ok(race.wall_ns as f64 / operations as f64)
}

/// Takes the line when the number in it is this core's, and makes it the other's.
fn hand_over(word: &AtomicU64, index: u64) {
    for trip in 0..TRIPS {
        let mine = 2 * trip + index;
        while word.load(Ordering::Acquire) != mine {
            spin_loop();
        }
        word.store(mine + 1, Ordering::Release);
    }
}

fn exchange(word: &AtomicU64, count: u64) {
    for _ in 0..count {
        let mut seen = word.load(Ordering::Relaxed);
        while let Err(now) =
            word.compare_exchange_weak(seen, seen + 1, Ordering::AcqRel, Ordering::Relaxed)
        {
            seen = now;
        }
    }
}

/// Nanoseconds for each record of all processes, each bound to a core.
fn append_bound(way: WayName, setting: Setting, cores: &[usize], dir: &Path) -> Result<f64> {
    let prepared = way.way(&vellum::Options::default()).prepare(dir, &setting)?;
    settle(dir)?;
    let race = race(setting.processes, LIMIT, &|runner| {
        bind(runner, cores)?;
        append(runner, &setting, prepared.as_ref())
    })?;
    verify(&setting, prepared.as_ref(), &race)?;
    Ok(race.wall_ns as f64 / setting.total_records() as f64)
}
