//! Suite `image`: random writes of 4 KiB into a disk image, direct, many at a time. What does it
//! cost how the space of the image was allocated?
//!
//! The image is a plain file that is treated as QEMU treats a qcow2 image: see the states. All cases
//! take turns in rounds (A B C … A B C …), each with a new image, and write the same blocks in the
//! same order; the first round is short and not counted. After each, the image is read back: each
//! block must hold what was written there last, and zeros if nothing was. What this system can't do
//! is told with the reason.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::conditions::Conditions;
use crate::error::{Context, Error, ErrorKind, Result};
use crate::place::{self, Place, Places};
use crate::progress::{Event, Progress};
use crate::report::Row;
use crate::scratch::ScratchKind;

mod content;
mod engine;
mod figures;
mod fio;
mod load;
mod round;
mod rows;
mod sequence;
mod size;
mod state;
#[cfg(test)]
mod tests;

pub use engine::ImageEngine;
pub use state::ImageState;

use content::BLOCK_BYTES;
use figures::Figures;
use load::{CLUSTER_BYTES, Load};
use round::{Case, Tool, measure};
use state::FirstTouch;

/// The report of this suite.
pub type Report = crate::report::Report<Row>;

/// The warm-up is so many times shorter than a round that counts.
const WARM_UP_SHARE: u32 = 10;
/// What can be done here is found out with an image of this length and so many writes.
const PROBE_BYTES: u64 = 1 << 20;
const PROBE_WRITES: u64 = 64;
const DEPTH_MAX: usize = 256;

/// What is to be measured.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// Where: a directory that exists, on the filesystem of interest. The images are made in a new
    /// directory inside it, which is removed in the end.
    pub directory: PathBuf,
    /// Is the filesystem of that directory measured? The default is yes.
    pub in_directory: bool,
    /// Filesystems to make for the run and to measure too; the default is none. Needs root.
    pub scratch: Vec<ScratchKind>,
    /// Which states of the image, in the order of their turns; the default is all. There are
    /// ratios only if [`ImageState::Metadata`] is among them.
    pub states: Vec<ImageState>,
    /// By which engines; the default is both.
    pub engines: Vec<ImageEngine>,
    /// The length of an image; the default is 2 GiB. Less where there is no room for it.
    pub bytes: u64,
    /// How many writes are on their way at a time; the default is 32.
    pub depth: usize,
    /// How long each case writes in a round; the default is 10 s. Rates change within a run, so
    /// runs of different length can't be compared.
    pub duration: Duration,
    /// How many rounds are counted, after one that is not; the default is 3.
    pub rounds: u32,
    /// Runs fio beside us, in the states that it can be asked for; the default is no.
    pub check_with_fio: bool,
}

impl Config {
    /// All states, both engines, three rounds, in `directory`.
    pub fn new(directory: impl Into<PathBuf>) -> Config {
        Config {
            directory: directory.into(),
            in_directory: true,
            scratch: Vec::new(),
            states: ImageState::ALL.to_vec(),
            engines: ImageEngine::ALL.to_vec(),
            bytes: 2 << 30,
            depth: 32,
            duration: Duration::from_secs(10),
            rounds: 3,
            check_with_fio: false,
        }
    }

    /// The same with 256 MiB, io_uring, and two rounds of a second.
    pub fn quick(directory: impl Into<PathBuf>) -> Config {
        let mut config = Config::new(directory);
        config.bytes = 256 << 20;
        config.duration = Duration::from_secs(1);
        config.rounds = 2;
        config.engines = vec![ImageEngine::Uring];
        config
    }

    fn check(&self) -> Result<()> {
        if self.states.is_empty() || self.engines.is_empty() || self.rounds == 0 {
            return Err(Error::invalid("at least one state, one engine and one round are needed"));
        }
        if !self.in_directory && self.scratch.is_empty() {
            return Err(Error::invalid("a directory or a filesystem is needed"));
        }
        let (min, max) = (size::BYTES_MIN, size::BYTES_MAX);
        if !(min..=max).contains(&self.bytes) || !self.bytes.is_multiple_of(CLUSTER_BYTES as u64) {
            return Err(Error::invalid(format!(
                "an image of {} bytes can't be made: it has whole clusters of {} KiB, {} MiB at \
                 least and {} GiB at most",
                self.bytes,
                CLUSTER_BYTES >> 10,
                min >> 20,
                max >> 30
            )));
        }
        if !(1..=DEPTH_MAX).contains(&self.depth) || self.duration.is_zero() {
            return Err(Error::invalid(format!(
                "a depth from 1 to {DEPTH_MAX} is needed, and some time"
            )));
        }
        if self.check_with_fio { fio::check() } else { Ok(()) }
    }

    /// In the order of their turns: the same state together, fio beside us.
    fn cases(&self) -> Vec<Case> {
        let mut cases = Vec::new();
        for &state in &self.states {
            for &engine in &self.engines {
                cases.push(Case { state, engine, tool: Tool::Vellum });
                if self.check_with_fio && state.first_touch() == FirstTouch::Plain {
                    cases.push(Case { state, engine, tool: Tool::Fio });
                }
            }
        }
        cases
    }
}

/// Measures what `config` says and tells `progress` how it goes.
///
/// # Errors
///
/// Nothing was run if the configuration makes no sense. A run ends early if its directory can't be
/// used. A disk that is full is no error of the run but of its cases.
pub fn run(config: &Config, progress: &mut dyn Progress) -> Result<Report> {
    config.check()?;
    ScratchKind::check(&config.scratch)?;
    let conditions = Conditions::now(&config.directory, &vellum::Options::new());
    let size = size::fitting(config)?;
    let home = place::home(&config.directory)?;
    let places = Places {
        home: home.path(),
        in_directory: config.in_directory,
        scratch: &config.scratch,
        bytes: size.room_bytes,
    };
    let mut warnings = crate::suite::load_warning(&conditions);
    warnings.extend(size.warning);
    for warning in &warnings {
        progress.event(&Event::Warning(warning));
    }
    let steps = places.count() * config.cases().len() as u64 * u64::from(config.rounds + 1);
    progress.event(&Event::Started { steps });
    let mut cases = Vec::new();
    places.visit(&mut warnings, progress, &mut |place, progress| {
        let entrants = contest(config, size.bytes, place, progress)?;
        cases.extend(rows::of(config, size.bytes, place, &entrants));
        Ok(())
    })?;
    progress.event(&Event::Finished);
    home.close().context(|| "remove the directory of the run")?;
    Ok(Report { suite: "image", conditions, rounds: config.rounds, warnings, cases })
}

/// A case in one place.
struct Entrant {
    case: Case,
    /// One for each round.
    figures: Vec<Figures>,
    skipped: Option<String>,
    failed: Option<String>,
}

impl Entrant {
    fn is_good(&self) -> bool {
        self.skipped.is_none() && self.failed.is_none()
    }
}

fn contest(
    config: &Config,
    bytes: u64,
    place: &Place<'_>,
    progress: &mut dyn Progress,
) -> Result<Vec<Entrant>> {
    let mut entrants = Vec::new();
    for case in config.cases() {
        let (skipped, failed) = probe(config, case, place.dir)?;
        entrants.push(Entrant { case, figures: Vec::new(), skipped, failed });
    }
    for round in 0..=config.rounds {
        for (turn, entrant) in entrants.iter_mut().enumerate().filter(|(_, one)| one.is_good()) {
            let Case { state, engine, tool } = entrant.case;
            let tool = tool.as_str();
            let what = format!("{} {state} {engine} {tool}, round {round}", place.filesystem);
            progress.event(&Event::Measuring { what: &what });
            let share = if round == 0 { WARM_UP_SHARE } else { 1 };
            let load = Load {
                duration: config.duration / share,
                // No block of one turn is like one of another.
                run: u64::from(round) << 32 | turn as u64,
                ..load(config, entrant.case, bytes)
            };
            match take_turn(entrant.case, &load, place.dir)? {
                Ok(figures) if round > 0 => entrant.figures.push(figures),
                Ok(_) => {}
                Err(error) => entrant.failed = Some(error.to_string()),
            }
        }
    }
    Ok(entrants)
}

fn load(config: &Config, case: Case, bytes: u64) -> Load {
    Load {
        blocks: (bytes / BLOCK_BYTES as u64) as u32,
        depth: config.depth,
        first_touch: case.state.first_touch(),
        duration: config.duration,
        writes_max: u64::MAX,
        run: 0,
    }
}

/// Measures and removes what is left of it. The inner result is that of the case.
fn take_turn(case: Case, load: &Load, dir: &Path) -> Result<Result<Figures>> {
    let result = measure(case, load, dir);
    for entry in std::fs::read_dir(dir).context(|| format!("list {}", dir.display()))? {
        let path = entry.context(|| format!("list {}", dir.display()))?.path();
        std::fs::remove_file(&path).context(|| format!("remove {}", path.display()))?;
    }
    super::settle(dir)?;
    Ok(result)
}

/// Why the case can't be done here, or does not work; tried by ourselves for fio too.
fn probe(config: &Config, case: Case, dir: &Path) -> Result<(Option<String>, Option<String>)> {
    let case = Case { tool: Tool::Vellum, ..case };
    let mut load = load(config, case, PROBE_BYTES);
    (load.depth, load.writes_max) = (config.depth.min(16), PROBE_WRITES);
    Ok(match take_turn(case, &load, dir)? {
        Ok(_) => (None, None),
        Err(error) if error.kind() == ErrorKind::Unsupported => (Some(error.to_string()), None),
        Err(error) => (None, Some(error.to_string())),
    })
}
