//! Suite `saturate`: many processes append to one log for longer than memory can hide the device.
//!
//! Other suites end before the kernel has much to write back. Here every way appends for many
//! seconds: dirty pages gather until the kernel stops whoever makes more of them, and a device that
//! has a budget uses it up. What matters then is not the mean but how long single records take, how
//! long a writer stands still, and that memory and disk stay bounded.
//!
//! One way after the other, with everything written and settled in between; in rounds (A B C … A B
//! C …) if there are several. The warm-up is a tenth as long: what happens from an idle beginning to
//! saturation is what is looked for, and the series show where it begins.
//!
//! **What is kept.** A log that goes on for ever is cut from behind. Every way keeps the same amount:
//! the Vellum ways trim, the others go on in a new file and remove the oldest, as with logrotate.
//! The default is twice the dirty limit if the disk has room for it; a log that kept less could be
//! removed before it was ever written, and would meet no device at all.
//!
//! **The dirty limit** is a share of memory (`vm.dirty_ratio`) or a number (`vm.dirty_bytes`), on a
//! machine with much memory gigabytes. If it is not reached the report says so. An administrator
//! may lower it for the run; this program changes no setting of the machine.

use std::path::PathBuf;
use std::time::Duration;

use crate::conditions::{Conditions, memory_bytes};
use crate::error::{Context, Error, Result};
use crate::place::{self, Place, Places};
use crate::progress::{Event, Progress};
use crate::record::STAMPED_BYTES_MIN;
use crate::report::Row;
use crate::scratch::ScratchKind;
use crate::ways::WayName;

mod book;
mod contest;
mod kept;
mod round;
mod rows;

/// The report of this suite.
pub type Report = crate::report::Report<Row>;

const PROCESSES_MAX: u32 = 256;
const BYTES_MAX: usize = 16 << 20;
const SECONDS_MAX: u64 = 24 * 3600;
/// No log is kept shorter: a segment of a Vellum log has 64 MiB, and several are in use.
const KEPT_BYTES_MIN: u64 = 64 << 20;
/// Filesystems made for the run are memory: of what is available a log may take this share.
const SCRATCH_SHARE: u64 = 8;

/// What is to be measured.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// Where: a directory that exists, on the filesystem of interest. The logs are made in a new
    /// directory inside it, which is removed in the end.
    pub directory: PathBuf,
    /// Is the filesystem of that directory measured? The default is yes.
    pub in_directory: bool,
    /// Filesystems to make for the run and to measure too; the default is none. Needs root.
    pub scratch: Vec<ScratchKind>,
    /// Which ways, in the order of their turns; the default is all but Linux AIO and io_uring.
    /// There are ratios only if [`WayName::Write`] is among them.
    pub ways: Vec<WayName>,
    /// How many processes append at once; the default is 4.
    pub processes: u32,
    /// How long a record is; the default is 4096.
    pub bytes: usize,
    /// How long each way appends in a round; the default is 20 seconds.
    pub duration: Duration,
    /// A way ends earlier when it has appended so many bytes; the default is never.
    pub bytes_max: Option<u64>,
    /// How much of a log is kept; the default is twice the dirty limit, as far as there is room.
    pub kept_bytes: Option<u64>,
    /// How many rounds are counted, after a short one that is not; the default is 1.
    pub rounds: u32,
    /// The options of the Vellum logs; layout and creation are set by the ways.
    pub vellum: vellum::Options,
}

impl Config {
    /// Six ways, twenty seconds each, in `directory`.
    pub fn new(directory: impl Into<PathBuf>) -> Config {
        use WayName::{Direct, Stdio, VellumFramed, VellumText, Write, Writev};
        Config {
            directory: directory.into(),
            in_directory: true,
            scratch: Vec::new(),
            ways: vec![VellumFramed, VellumText, Write, Writev, Stdio, Direct],
            processes: 4,
            bytes: 4096,
            duration: Duration::from_secs(20),
            bytes_max: None,
            kept_bytes: None,
            rounds: 1,
            vellum: vellum::Options::new(),
        }
    }

    /// The same for two seconds and four ways.
    pub fn quick(directory: impl Into<PathBuf>) -> Config {
        let mut config = Config::new(directory);
        config.ways =
            vec![WayName::VellumFramed, WayName::VellumText, WayName::Write, WayName::Direct];
        config.duration = Duration::from_secs(2);
        config.kept_bytes = Some(256 << 20);
        config
    }

    fn check(&self) -> Result<()> {
        if self.ways.is_empty() || self.rounds == 0 || self.duration.is_zero() {
            return Err(Error::invalid("at least one way, one round and some time are needed"));
        }
        if self.duration.as_secs() > SECONDS_MAX {
            return Err(Error::invalid(format!("at most {SECONDS_MAX} seconds")));
        }
        for (index, way) in self.ways.iter().enumerate() {
            if self.ways[..index].contains(way) {
                return Err(Error::invalid(format!("the way {way} is given twice")));
            }
        }
        if !(1..=PROCESSES_MAX).contains(&self.processes) {
            return Err(Error::invalid(format!("from 1 to {PROCESSES_MAX} processes can append")));
        }
        if !(STAMPED_BYTES_MIN..=BYTES_MAX).contains(&self.bytes) {
            return Err(Error::invalid(format!(
                "records of {} bytes: from {STAMPED_BYTES_MIN} to {BYTES_MAX} can be verified",
                self.bytes
            )));
        }
        match self.kept_bytes {
            Some(bytes) if bytes < KEPT_BYTES_MIN => Err(Error::invalid(format!(
                "at least {} MiB of a log are kept",
                KEPT_BYTES_MIN >> 20
            ))),
            _ => Ok(()),
        }
    }
}

/// Measures what `config` says and tells `progress` how it goes.
///
/// Forks: best called from a process with no other thread. A way that fails is in the report with
/// the reason and does not end the run.
///
/// # Errors
///
/// Nothing was run if the configuration makes no sense, or if there is no place to run in.
///
/// # Cost
///
/// Each way takes the time asked for, and about as long again to write everything out and read it
/// back. Disk: twice what is kept. The device is written to as fast as it can.
pub fn run(config: &Config, progress: &mut dyn Progress) -> Result<Report> {
    config.check()?;
    ScratchKind::check(&config.scratch)?;
    let conditions = Conditions::now(&config.directory, &config.vellum);
    let home = place::home(&config.directory)?;
    let available = memory_bytes("MemAvailable").unwrap_or(1 << 30);
    let limit = Limit {
        bytes: conditions.writeback.limit_bytes(available),
        slowing_bytes: conditions.writeback.slowing_bytes(available),
        wanted: config.kept_bytes,
        scratch_max: available / SCRATCH_SHARE,
    };
    let places = Places {
        home: home.path(),
        in_directory: config.in_directory,
        scratch: &config.scratch,
        bytes: contest::disk_bytes(limit.wanted_in(true)),
    };
    places.check()?;
    let mut warnings = crate::suite::load_warning(&conditions);
    for warning in &warnings {
        progress.event(&Event::Warning(warning));
    }
    let steps = places.count() * config.ways.len() as u64 * u64::from(config.rounds + 1);
    progress.event(&Event::Started { steps });
    let (mut rows, mut noticed) = (Vec::new(), Vec::new());
    places.visit(&mut warnings, progress, &mut |place, progress| {
        let kept_bytes = match limit.fit(place, &mut noticed) {
            Some(bytes) => bytes,
            None => {
                let steps = config.ways.len() as u64 * u64::from(config.rounds + 1);
                progress.event(&Event::Omitted { steps });
                rows.extend(rows::without_room(config, place));
                return Ok(());
            }
        };
        let (cases, seen) = contest::run(config, place, kept_bytes, limit.slowing_bytes, progress)?;
        noticed.extend(seen);
        rows.extend(cases);
        Ok(())
    })?;
    progress.event(&Event::Finished);
    warnings.extend(noticed);
    home.close().context(|| "remove the directory of the run")?;
    Ok(Report { suite: "saturate", conditions, rounds: config.rounds, warnings, cases: rows })
}

/// How much of a log is to be kept.
struct Limit {
    /// The dirty limit.
    bytes: Option<u64>,
    /// From so much on the kernel slows writers down.
    slowing_bytes: Option<u64>,
    /// What was asked for.
    wanted: Option<u64>,
    scratch_max: u64,
}

impl Limit {
    fn wanted_in(&self, is_scratch: bool) -> u64 {
        let usual = self.bytes.map_or(KEPT_BYTES_MIN, |bytes| bytes * 2);
        let usual = if is_scratch { usual.min(self.scratch_max) } else { usual };
        self.wanted.unwrap_or(usual).max(KEPT_BYTES_MIN)
    }

    /// What is kept in a place: less than was wanted if that has no room, and then it says so.
    /// `None` if there is too little room for a log that goes on.
    fn fit(&self, place: &Place<'_>, warnings: &mut Vec<String>) -> Option<u64> {
        let wanted = self.wanted_in(place.is_scratch);
        let room = contest::kept_bytes(place.usable_bytes());
        if wanted <= room || room < KEPT_BYTES_MIN {
            return (wanted <= room).then_some(wanted);
        }
        warnings.push(format!(
            "{}: {} MiB of each log are kept and not {} MiB, which have no room",
            place.filesystem,
            room >> 20,
            wanted >> 20
        ));
        Some(room)
    }
}

#[cfg(test)]
mod tests;
