//! From a short run to a recommendation that the library follows.
//!
//! ```text
//! detect     filesystem, mount, devices, kernel, memory      ──► traps
//! measure    ways against each other, for three purposes     ──► rows of a report
//! choice     which of several ways, by rounds                ◄── recommend, for each purpose
//! advised    all of it, for a terminal, as JSON, as `vellum.toml`
//! ```
//!
//! What is recommended is never slower beyond noise than what was measured beside it, and the
//! default is left only for a clear gain (`choice`). What would not be safe, such as mapping files
//! where a full disk ends the process, is not measured at all.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use vellum_command::private_dir::PrivateDir;

use crate::conditions::Conditions;
use crate::error::{Context, Error, Result};
use crate::place::Place;
use crate::progress::{Event, Progress};
use crate::suite::Arena;

mod advised;
mod choice;
mod commit_path;
mod detect;
mod measure;
mod recommend;
mod spellings;
mod store;
mod traps;
mod way;

pub use crate::faster::Evidence;
pub use advised::Advised;
pub use commit_path::{CommitPaths, MeasuredPath, commit_paths};
#[cfg(test)]
pub(crate) use detect::mounts_and_disks;
pub use detect::{Disk, Feature, IoLimit, Surroundings};
pub use recommend::{CommitTime, Recommendation, Rival, Setting, Sureness};
pub use store::check_replaceable;
pub(crate) use traps::traps;
pub use traps::{Severity, Trap};
pub use way::Purpose;

use measure::file::FileField;
use measure::log::LogField;
use measure::wal::WalField;
use measure::{Entrant, Field, Times, contest, enter};

/// All measurements together never take more of the free space than one part of so many …
const FREE_SHARE: u64 = 10;
/// … nor more than this.
const SPACE_MAX: u64 = 1 << 30;

/// With fewer rounds nobody can be sure of anything.
const ROUNDS_MIN: u32 = 5;
/// With so many, one of them may go the other way.
const ROUNDS: u32 = 9;
/// Shorter runs have fewer rounds, and fewer ways.
const QUICK: Duration = Duration::from_secs(20);

/// What is to be found out.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// Where: a directory that exists. Files are made in a new directory inside it, which is
    /// removed in the end.
    pub directory: PathBuf,
    /// About how long it may take, in all; the default is a minute.
    pub time: Duration,
    /// What for; the default is everything.
    pub purposes: Vec<Purpose>,
}

impl Config {
    /// A minute for all purposes, in `directory`.
    pub fn new(directory: impl Into<PathBuf>) -> Config {
        Config {
            directory: directory.into(),
            time: Duration::from_secs(60),
            purposes: Purpose::ALL.to_vec(),
        }
    }

    fn is_quick(&self) -> bool {
        self.time < QUICK
    }

    fn rounds(&self) -> u32 {
        if self.is_quick() { ROUNDS_MIN } else { ROUNDS }
    }
}

/// Looks around in `config.directory`, measures, and says what to do there. Tells `progress` how it
/// goes.
///
/// Forks: best called from a process with no other thread. A way that fails has a row with the
/// reason and does not end the run.
///
/// # Errors
///
/// The directory can't be used, or no purpose and no time is given.
///
/// # Cost
///
/// About `config.time`, more on a slow device: each way is gone a few times at least. A tenth of
/// the free space, and at most 1 GiB.
pub fn run(config: &Config, progress: &mut dyn Progress) -> Result<Advised> {
    if config.purposes.is_empty() || config.time.is_zero() {
        return Err(Error::invalid("a purpose and some time are needed"));
    }
    let conditions = Conditions::now(&config.directory, &vellum::Options::default());
    let home = PrivateDir::new(&config.directory, "vellum-advise-")
        .context(|| format!("make a directory in {}", config.directory.display()))?;
    let surroundings = Surroundings::of(home.path())?;
    let mut warnings = crate::suite::load_warning(&conditions);
    for warning in &warnings {
        progress.event(&Event::Warning(warning));
    }
    let space = (surroundings.free_bytes / FREE_SHARE).min(SPACE_MAX);
    if space < SPACE_MAX {
        warnings.push(format!(
            "measured with a tenth of the free space, {} MiB; more would be closer to real use",
            space >> 20
        ));
    }
    let mut races = Vec::new();
    for purpose in &config.purposes {
        let dir = home.path().join(purpose.as_str());
        fs::create_dir(&dir).context(|| format!("make {}", dir.display()))?;
        let cores = surroundings.cores;
        let field = field(*purpose, dir, space, cores, config.is_quick(), &mut warnings);
        races.push(Race::new(*purpose, field));
    }
    let turns: usize = races.iter().map(Race::runners).sum();
    progress.event(&Event::Started { steps: turns as u64 * u64::from(config.rounds() + 1) });
    let budget = config.time / config.purposes.len() as u32;
    let mut measured = Vec::new();
    let place = Place { dir: home.path(), filesystem: surroundings.kind(), is_scratch: false };
    let mut arena = Arena::new(&place, config.rounds(), progress, &mut warnings);
    for race in races {
        let purpose = race.purpose;
        measured.push(race.run(budget, &mut arena)?);
        let dir = home.path().join(purpose.as_str());
        fs::remove_dir_all(&dir).context(|| format!("remove {}", dir.display()))?;
        crate::suite::settle(home.path())?;
    }
    let paths = commit_path_for(config, home.path(), &mut warnings);
    progress.event(&Event::Finished);
    home.close().context(|| "remove the directory of the run")?;
    let advised = Advised::new(conditions, config.rounds(), warnings, surroundings, measured);
    Ok(Advised { commit_paths: paths, ..advised })
}

/// Which way commit groups take to the device best, where a log that commits is asked about.
fn commit_path_for(config: &Config, dir: &Path, warnings: &mut Vec<String>) -> Option<CommitPaths> {
    if !config.purposes.contains(&Purpose::Wal) {
        return None;
    }
    let found = commit_path::in_directory(dir);
    found.map_err(|error| warnings.push(format!("commit paths were not measured: {error}"))).ok()
}

/// What was measured for a purpose, or why nothing was.
struct Measured {
    purpose: Purpose,
    figures: Vec<(String, &'static str)>,
    entrants: std::result::Result<Vec<Entrant>, String>,
    /// How long commits took, for each entrant.
    times: Vec<Vec<Times>>,
}

/// The measurement for a purpose, ready to start.
struct Race {
    purpose: Purpose,
    lanes: std::result::Result<(Box<dyn Field>, Vec<Entrant>), String>,
}

impl Race {
    fn new(purpose: Purpose, field: Result<Box<dyn Field>>) -> Race {
        let enter = |mut field: Box<dyn Field>| {
            let entrants = enter(field.as_mut());
            (field, entrants)
        };
        Race { purpose, lanes: field.map(enter).map_err(|error| error.to_string()) }
    }

    fn runners(&self) -> usize {
        let entrants = self.lanes.iter().flat_map(|(_, entrants)| entrants);
        entrants.filter(|entrant| entrant.is_good()).count()
    }

    fn run(self, budget: Duration, arena: &mut Arena<'_>) -> Result<Measured> {
        let purpose = self.purpose;
        Ok(match self.lanes {
            Ok((mut field, mut entrants)) => {
                contest(field.as_mut(), &mut entrants, budget, arena)?;
                let times = (0..entrants.len()).map(|way| field.times(way)).collect();
                Measured { purpose, figures: field.figures(), entrants: Ok(entrants), times }
            }
            Err(reason) => {
                let (figures, times) = (Vec::new(), Vec::new());
                Measured { purpose, figures, entrants: Err(reason), times }
            }
        })
    }
}

/// What is measured for `purpose`, in the directory `dir`, which is new.
fn field(
    purpose: Purpose,
    dir: PathBuf,
    space: u64,
    cores: usize,
    is_quick: bool,
    warnings: &mut Vec<String>,
) -> Result<Box<dyn Field>> {
    let mut shorter = |bytes: Option<u64>| {
        let note = |bytes| {
            let size = crate::bytes::size(bytes);
            format!("{purpose}: measured with short segments, of {size}, for want of time or space")
        };
        warnings.extend(bytes.map(note));
    };
    Ok(match purpose {
        Purpose::Wal => {
            let field = WalField::new(dir, space, cores, is_quick)?;
            shorter(field.shorter_segments());
            Box::new(field)
        }
        Purpose::Log => {
            let field = LogField::new(dir, space, cores, is_quick)?;
            shorter(field.shorter_segments());
            Box::new(field)
        }
        Purpose::File => Box::new(FileField::new(dir, space, cores, is_quick)?),
    })
}
