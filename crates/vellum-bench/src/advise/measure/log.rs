//! A log that processes share: how many records a second they append, short ones and pages, and how
//! many pages if the device has to have them in the end.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use vellum::{Fill, Options, Preallocate, Tuning};

use super::Field;
use super::default::Default;
use crate::advise::Purpose;
use crate::advise::way::{LogWay, Way};
use crate::error::{Context, Error, Result};
use crate::process::race;
use crate::setting::Setting;
use crate::suite::append::round::{append, verify};
use crate::suite::settle;
use crate::ways::Way as _;
use crate::ways::vellum_framed::VellumFramed;

/// Two segments of the usual size are there at once, and a third is made ready.
const SEGMENTS_MAX: u64 = 4;
const SEGMENT_BYTES: u64 = 64 << 20;
/// There is no time to make longer ones.
const SEGMENT_BYTES_QUICK: u64 = 8 << 20;
const SEGMENT_BYTES_MIN: u64 = 256 << 10;

/// What each process appends in the first round.
const FIRST: [(u64, usize); 2] = [(4000, 128), (1000, 4096)];
/// All of them together append no more than this in a turn: memory has to hold it several times.
const BYTES_MAX: u64 = 256 << 20;
const FACTOR_MAX: f64 = 200.0;
const RECORDS_MIN: u64 = 100;
const LIMIT: Duration = Duration::from_secs(60);

/// What there is besides the default, the simplest first.
const OTHERS: [LogWay; 5] = [
    LogWay::new(Fill::Pwrite, Preallocate::Off),
    LogWay::new(Fill::Pwrite, Preallocate::Fallocate),
    LogWay::new(Fill::Mapped, Preallocate::Off),
    LogWay::new(Fill::Mapped, Preallocate::Fallocate),
    LogWay::new(Fill::Mapped, Preallocate::Zeros),
];

/// What the processes append in a turn.
pub(in crate::advise) struct LogField {
    dir: PathBuf,
    default: Default,
    ways: Vec<LogWay>,
    settings: [Setting; 2],
    segment_bytes: u64,
    bytes_max: u64,
    /// What was measured since the round began; the rest of its time was spent besides.
    clocked: Duration,
}

impl LogField {
    /// In the directory `dir`, which is new. A log takes up to `space` bytes.
    pub(in crate::advise) fn new(
        dir: PathBuf,
        space: u64,
        cores: usize,
        is_quick: bool,
    ) -> Result<LogField> {
        let usual = if is_quick { SEGMENT_BYTES_QUICK } else { SEGMENT_BYTES };
        let segment_bytes = 1 << (space / 2 / SEGMENTS_MAX).max(1).ilog2();
        if segment_bytes < SEGMENT_BYTES_MIN {
            return Err(Error::no_space("there is too little space for logs"));
        }
        let processes = u32::try_from(2 * cores).unwrap_or(u32::MAX).clamp(2, 4);
        let default = Default::of(&dir, &Options::default())?;
        let ways = default.and(&OTHERS);
        Ok(LogField {
            default,
            ways,
            dir,
            settings: FIRST.map(|(records, bytes)| Setting::new(processes, records, bytes)),
            segment_bytes: segment_bytes.min(usual),
            bytes_max: (space / 2).min(BYTES_MAX),
            clocked: Duration::ZERO,
        })
    }

    /// Whether space or time is too short for the usual segments; then how long they are.
    pub(in crate::advise) fn shorter_segments(&self) -> Option<u64> {
        (self.segment_bytes < SEGMENT_BYTES).then_some(self.segment_bytes)
    }

    fn options(&self, way: usize) -> Options {
        let mut options = Options::default();
        if let Some(bytes) = self.shorter_segments() {
            options = options.tuning(Tuning::new().segment_capacity_bytes(bytes));
        }
        self.ways[way].on(options)
    }

    /// Appends and lets the device have it: how long each took.
    fn measure(&mut self, way: usize, setting: &Setting) -> Result<(Duration, Duration)> {
        let log = VellumFramed::new(&self.options(way));
        let prepared = log.prepare(&self.dir, setting)?;
        settle(&self.dir)?;
        let race =
            race(setting.processes, LIMIT, &|runner| append(runner, setting, prepared.as_ref()))?;
        let begun = Instant::now();
        settle(&self.dir)?;
        let written = begun.elapsed();
        verify(setting, prepared.as_ref(), &race)?;
        let appended = Duration::from_nanos(race.wall_ns.max(1));
        self.clocked += appended + written;
        Ok((appended, written))
    }
}

impl Field for LogField {
    fn purpose(&self) -> Purpose {
        Purpose::Log
    }

    fn ways(&self) -> Vec<Way> {
        self.ways.iter().copied().map(Way::Log).collect()
    }

    fn figures(&self) -> Vec<(String, &'static str)> {
        let unit = "records/s";
        [("128 B", unit), ("4 KiB", unit), ("4 KiB, written back", unit)]
            .map(|(name, unit)| (name.into(), unit))
            .to_vec()
    }

    fn probe(&mut self, way: usize) -> std::result::Result<(), String> {
        self.default.probe(&self.dir, &self.options(way), self.ways[way])
    }

    fn turn(&mut self, way: usize, _round: u32) -> Result<Vec<f64>> {
        let mut speeds = Vec::new();
        for setting in self.settings {
            let measured = self.measure(way, &setting);
            let log = self.dir.join("log");
            fs::remove_dir_all(&log).context(|| format!("remove {}", log.display()))?;
            settle(&self.dir)?;
            let (appended, written) = measured?;
            let speed = |time: Duration| setting.total_records() as f64 / time.as_secs_f64();
            speeds.push(speed(appended));
            if setting.bytes >= 4096 {
                speeds.push(speed(appended + written));
            }
        }
        Ok(speeds)
    }

    fn fit(&mut self, spent: Duration, budget: Duration) {
        let overhead = spent.saturating_sub(self.clocked);
        let left = budget.saturating_sub(overhead).as_secs_f64();
        let factor = (left / self.clocked.as_secs_f64().max(1e-6)).min(FACTOR_MAX);
        for setting in &mut self.settings {
            let most = self.bytes_max / (u64::from(setting.processes) * setting.bytes as u64);
            let records = (setting.records as f64 * factor) as u64;
            setting.records = records.min(most).max(RECORDS_MIN);
        }
    }
}
