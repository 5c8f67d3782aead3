//! Suite `sync`: 5 MiB in pieces of 4 KiB, each synced. What does the state of the file cost, and
//! what the way of syncing?
//!
//! All ways take turns in rounds (A B C … A B C …); the first round is not counted. After each, the
//! file is read back and compared. What this system can't do is told with the reason.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::io::Errno;

use crate::conditions::Conditions;
use crate::error::{Context, Error, Result};
use crate::place::{self, Place, Places};
use crate::process::alone;
use crate::progress::{Event, Progress};
use crate::record::Records;
pub use crate::report::sync::Case;
use crate::scratch::ScratchKind;
use crate::shared::Shared;

mod ways;

pub use ways::SyncWay;

/// The report of this suite.
pub type Report = crate::report::Report<Case>;

/// What is synced at a time: a page, and a block of the usual filesystems.
const PIECE_BYTES: usize = 4096;
/// For directories, journals and what else a filesystem keeps.
const SPARE_BYTES: u64 = 64 << 20;
/// No single measurement may take longer; it may be of many gigabytes.
const LIMIT: Duration = Duration::from_secs(3600);
/// Rounds can be told apart by so many numbers.
const NUMBERS: u32 = 9999;

/// What is to be measured.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// Where: a directory that exists, on the filesystem of interest. The files are made in a new
    /// directory inside it, which is removed in the end.
    pub directory: PathBuf,
    /// Is the filesystem of that directory measured? The default is yes.
    pub in_directory: bool,
    /// Filesystems to make for the run and to measure too; the default is none. Needs root.
    pub scratch: Vec<ScratchKind>,
    /// How much is written; the default is 5 MiB.
    pub bytes: u64,
    /// How much [`SyncWay::OneSync`] writes once more, beside the others; the default is none.
    pub big_bytes: Option<u64>,
    /// Which ways, in the order of their turns; the default is all. There are ratios only if
    /// [`SyncWay::Growing`] is among them.
    pub ways: Vec<SyncWay>,
    /// How many rounds are counted, after one that is not; the default is 5.
    pub rounds: u32,
}

impl Config {
    /// All ways, five rounds, in `directory`.
    pub fn new(directory: impl Into<PathBuf>) -> Config {
        Config {
            directory: directory.into(),
            in_directory: true,
            scratch: Vec::new(),
            bytes: 5 << 20,
            big_bytes: None,
            ways: SyncWay::ALL.to_vec(),
            rounds: 5,
        }
    }

    /// The same with 1 MiB and two rounds: seconds.
    pub fn quick(directory: impl Into<PathBuf>) -> Config {
        let mut config = Config::new(directory);
        config.bytes = 1 << 20;
        config.rounds = 2;
        config
    }

    fn check(&self) -> Result<()> {
        if self.ways.is_empty() || self.rounds == 0 {
            return Err(Error::invalid("at least one way and one round are needed"));
        }
        for bytes in [Some(self.bytes), self.big_bytes].into_iter().flatten() {
            if bytes == 0 || bytes % PIECE_BYTES as u64 != 0 {
                return Err(Error::invalid(format!(
                    "{bytes} bytes can't be written in pieces of {PIECE_BYTES}"
                )));
            }
        }
        Ok(())
    }

    /// The same with as much as has room in `bytes`, but a piece.
    fn fitted(&self, bytes: u64) -> Config {
        let most = (bytes / PIECE_BYTES as u64 * PIECE_BYTES as u64).max(PIECE_BYTES as u64);
        let mut config = self.clone();
        config.bytes = config.bytes.min(most);
        config.big_bytes = config.big_bytes.map(|bytes| bytes.min(most));
        config
    }

    fn entrants(&self) -> Vec<Entrant> {
        let entrant = |way, bytes, is_big| Entrant {
            way,
            bytes,
            is_big,
            nanos: Vec::new(),
            skipped: None,
            failed: None,
        };
        let big = self.big_bytes.map(|bytes| entrant(SyncWay::OneSync, bytes, true));
        self.ways.iter().map(|way| entrant(*way, self.bytes, false)).chain(big).collect()
    }
}

/// Measures what `config` says and tells `progress` how it goes.
///
/// # Errors
///
/// Nothing was run if the configuration makes no sense, or if the disk would not hold it. A run
/// ends early if its directory can't be used.
pub fn run(config: &Config, progress: &mut dyn Progress) -> Result<Report> {
    config.check()?;
    ScratchKind::check(&config.scratch)?;
    let conditions = Conditions::now(&config.directory, &vellum::Options::new());
    let home = place::home(&config.directory)?;
    let places = Places {
        home: home.path(),
        in_directory: config.in_directory,
        scratch: &config.scratch,
        bytes: config.bytes.max(config.big_bytes.unwrap_or(0)) + SPARE_BYTES,
    };
    places.check()?;
    let mut warnings = crate::suite::load_warning(&conditions);
    for warning in &warnings {
        progress.event(&Event::Warning(warning));
    }
    let ways = config.entrants().len() as u64;
    let steps = places.count() * ways * u64::from(config.rounds + 1);
    progress.event(&Event::Started { steps });
    let (mut cases, mut noticed) = (Vec::new(), Vec::new());
    places.visit(&mut warnings, progress, &mut |place, progress| {
        let fitted = config.fitted(place.usable_bytes());
        if (fitted.bytes, fitted.big_bytes) != (config.bytes, config.big_bytes) {
            let warning = format!(
                "{}: {} KiB are written, no more have room",
                place.filesystem,
                fitted.big_bytes.unwrap_or(fitted.bytes) >> 10
            );
            progress.event(&Event::Warning(&warning));
            noticed.push(warning);
        }
        cases.extend(contest(&fitted, place, progress)?);
        Ok(())
    })?;
    warnings.extend(noticed);
    progress.event(&Event::Finished);
    home.close().context(|| "remove the directory of the run")?;
    Ok(Report { suite: "sync", conditions, rounds: config.rounds, warnings, cases })
}

/// A way in one place.
struct Entrant {
    way: SyncWay,
    bytes: u64,
    is_big: bool,
    nanos: Vec<f64>,
    skipped: Option<String>,
    failed: Option<String>,
}

fn contest(config: &Config, place: &Place<'_>, progress: &mut dyn Progress) -> Result<Vec<Case>> {
    let path = place.dir.join("file");
    let mut entrants = config.entrants();
    for entrant in &mut entrants {
        probe(entrant, &path)?;
    }
    for round in 0..=config.rounds {
        for entrant in &mut entrants {
            if !entrant.is_good() {
                progress.event(&Event::Omitted { steps: 1 });
                continue;
            }
            let what = format!("{} {} {} {round}", place.filesystem, entrant.bytes, entrant.way);
            progress.event(&Event::Measuring { what: &what });
            if entrant.is_big && round == 0 {
                // A warm-up would take long, and what it warms is small beside the file.
                continue;
            }
            let result = measure(entrant.way, &path, entrant.bytes, round % NUMBERS);
            remove(&path)?;
            super::settle(place.dir)?;
            match result {
                Ok(nanos) if round > 0 => entrant.nanos.push(nanos),
                Ok(_) => {}
                Err(error) => entrant.failed = Some(error.to_string()),
            }
        }
    }
    let growing = entrants.iter().find(|entrant| entrant.way == SyncWay::Growing);
    let growing = growing.map_or_else(Vec::new, Entrant::good_nanos);
    Ok(entrants.iter().map(|entrant| entrant.case(place, &growing)).collect())
}

/// Tries a piece: sets why the way can't work here, if it can't.
fn probe(entrant: &mut Entrant, path: &Path) -> Result<()> {
    let errno = Shared::<AtomicU64>::new(1)?;
    let result = alone(LIMIT, || {
        write(entrant.way, path, PIECE_BYTES as u64, 0).map(drop).map_err(|error| {
            errno[0].store(error.raw_os_error().unwrap_or(0) as u64, Ordering::Relaxed);
            Error::failed(error.to_string())
        })
    });
    remove(path)?;
    let Err(error) = result else { return Ok(()) };
    let reason = error.to_string();
    match Errno::from_raw_os_error(errno[0].load(Ordering::Relaxed) as i32) {
        Errno::OPNOTSUPP | Errno::INVAL | Errno::NOSYS => entrant.skipped = Some(reason),
        _ => entrant.failed = Some(reason),
    }
    Ok(())
}

fn remove(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).context(|| format!("remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

/// Nanoseconds of one way, one time, verified. In a process of its own: where a mapped file has no
/// room, or its filesystem does not come along, that is killed.
fn measure(way: SyncWay, path: &Path, bytes: u64, round: u32) -> Result<f64> {
    let nanos = Shared::<AtomicU64>::new(1)?;
    alone(LIMIT, || {
        let taken = write(way, path, bytes, round).context(|| format!("write pieces, {way}"))?;
        nanos[0].store(taken.to_bits(), Ordering::Relaxed);
        verify(path, bytes, round)
    })?;
    Ok(f64::from_bits(nanos[0].load(Ordering::Relaxed)))
}

/// Writes all pieces and returns how many nanoseconds it took.
fn write(way: SyncWay, path: &Path, bytes: u64, round: u32) -> io::Result<f64> {
    way.prepare(path, bytes)?;
    let piece_bytes = if way == SyncWay::OneWrite { bytes as usize } else { PIECE_BYTES };
    let mut pieces = Records::new(round, PIECE_BYTES);
    let whole: Vec<u8> = match way {
        SyncWay::OneWrite => {
            let pieces = (0..bytes / PIECE_BYTES as u64).map(|_| pieces.next_record().to_vec());
            pieces.flatten().collect()
        }
        _ => Vec::new(),
    };
    let mut writer = way.open(path, bytes, piece_bytes)?;
    let begun = Instant::now();
    for offset in (0..bytes).step_by(piece_bytes) {
        let piece = if whole.is_empty() { pieces.next_record() } else { &whole };
        writer.write(piece, offset)?;
    }
    if way.syncs_once() {
        writer.sync()?;
    }
    Ok(begun.elapsed().as_nanos() as f64)
}

/// Is all that was written in the file, and nothing else?
fn verify(path: &Path, bytes: u64, round: u32) -> Result<()> {
    let mut file = File::open(path).context(|| format!("open {}", path.display()))?;
    let len = file.metadata().context(|| format!("look at {}", path.display()))?.len();
    if len != bytes {
        return Err(Error::failed(format!("the file has {len} bytes and not {bytes}")));
    }
    let mut pieces = Records::new(round, PIECE_BYTES);
    let mut piece = vec![0; PIECE_BYTES];
    for number in 0..bytes / PIECE_BYTES as u64 {
        file.read_exact(&mut piece).context(|| format!("read {}", path.display()))?;
        if piece != pieces.next_record() {
            return Err(Error::failed(format!("piece {number} is not what was written")));
        }
    }
    Ok(())
}

impl Entrant {
    fn is_good(&self) -> bool {
        self.skipped.is_none() && self.failed.is_none()
    }

    fn good_nanos(&self) -> Vec<f64> {
        if self.is_good() { self.nanos.clone() } else { Vec::new() }
    }

    /// `growing` is what that way took, round by round.
    fn case(&self, place: &Place<'_>, growing: &[f64]) -> Case {
        let nanos = self.good_nanos();
        // Another amount can't be compared.
        let growing = if self.is_big { &[] } else { growing };
        let ratios: Vec<f64> = nanos.iter().zip(growing).map(|(way, to)| way / to).collect();
        let millis: Vec<f64> = nanos.iter().map(|nanos| nanos / 1e6).collect();
        let pieces = self.bytes / PIECE_BYTES as u64;
        Case {
            case: self.way,
            filesystem: place.filesystem.to_string(),
            scratch: place.is_scratch,
            bytes: self.bytes,
            piece_bytes: PIECE_BYTES,
            syncs: if self.way.syncs_once() { 1 } else { pieces },
            milliseconds: millis,
            time_ratio_to_growing: ratios,
            verified: self.is_good(),
            skipped: self.skipped.clone(),
            failed: self.failed.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
