//! The suites: their comparisons, and the course of a run.
//!
//! ```text
//! Suite::run          records the conditions, then visits each place of the scope:
//!   Plan::compete     runs one contest, or one contest for each setting
//!     Arena::rounds   all entrants take turns: a warm-up, then counted rounds
//!   Entrant::case     turns the samples of an entrant into a case of the report
//! ```
//!
//! A suite is a module with a `Config` that implements [`Suite`], and whose fields are its options.
//! A new suite needs such a module, and an entry in [`KINDS`].

pub mod append;
mod arena;
pub mod commit;
pub mod foreign;
pub mod image;
pub mod latency;
pub mod loggers;
mod options;
pub mod read;
pub mod saturate;
pub mod scale;
pub mod sync;
pub mod write;

use std::fmt;
use std::fs::File;
use std::path::Path;

use arena::Tally;
pub(crate) use arena::{Arena, Entrant, Turn};
pub use options::Kind;

use crate::conditions::Conditions;
use crate::error::{Context, Error, Result};
use crate::interrupt;
use crate::place::{self, Places, Scope};
use crate::progress::{Event, Progress};
use crate::report::{Case, INTERRUPTED, Report};

/// A load average above this means that other programs are running.
const LOAD_MAX: f64 = 0.5;

/// Something that can be measured.
pub trait Suite {
    /// The name in reports.
    fn name(&self) -> &'static str;

    /// Where it is measured, and how often.
    fn scope(&self) -> &Scope;

    /// The scope, to be changed.
    fn scope_mut(&mut self) -> &mut Scope;

    /// Checks the configuration and decides what to do.
    ///
    /// # Errors
    ///
    /// The configuration makes no sense, or disk and memory would not hold it.
    fn plan(&self) -> Result<Plan<'_>>;

    /// Measures and reports to `progress`.
    ///
    /// Forks, so the calling process should have no other thread. A case that fails does not end
    /// the run: the report has the reason. A run that is killed leaves its directory behind; the
    /// name of the directory begins with `vellum-bench-`.
    ///
    /// # Errors
    ///
    /// The configuration makes no sense; then nothing was run. The directory can't be used. The run
    /// was asked to end, and no round was over by then.
    fn run(&self, progress: &mut dyn Progress) -> Result<Report> {
        self.scope().check()?;
        run(self.name(), self.scope(), self.plan()?, progress)
    }
}

impl fmt::Debug for dyn Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The suites that a command line can ask for, in the order in which help lists them.
pub const KINDS: [Kind; 8] = [
    append::options::KIND,
    Kind::of::<commit::Config>("commit"),
    Kind::of::<image::Config>("image"),
    Kind::of::<latency::Config>("latency"),
    Kind::of::<read::Config>("read"),
    Kind::of::<scale::Config>("scale"),
    Kind::of::<sync::Config>("sync"),
    Kind::of::<write::Config>("write"),
];

/// The suites of `vellum bench all`, in the order in which they run, with their usual or their
/// quick settings.
pub fn suites(directory: &Path, is_quick: bool) -> Vec<Box<dyn Suite>> {
    let quick: &[&str] = if is_quick { &["--quick"] } else { &[] };
    let mut suites: Vec<_> = KINDS.iter().map(|kind| kind.asked(quick, directory)).collect();
    suites.push(append::options::KIND.asked(&[&["--saturate"], quick].concat(), directory));
    suites
}

/// The plan of a suite's run. [`Suite::plan`] makes it, [`Suite::run`] carries it out.
pub struct Plan<'a> {
    /// The options of the Vellum logs, for the conditions.
    pub(crate) options: vellum::Options,
    /// Other libraries that take part.
    pub(crate) software: Vec<String>,
    /// How many bytes must fit in each place.
    pub(crate) bytes: u64,
    /// How many turns a round has, in each place.
    pub(crate) turns: usize,
    /// Why the numbers should be taken with care.
    pub(crate) warnings: Vec<String>,
    /// Runs the contests of one place.
    pub(crate) compete: Compete<'a>,
}

/// Runs the contests of one place and returns their cases.
type Compete<'a> = Box<dyn Fn(&mut Arena<'_>) -> Result<Vec<Case>> + 'a>;

impl<'a> Plan<'a> {
    pub(crate) fn new(
        bytes: u64,
        turns: usize,
        compete: impl Fn(&mut Arena<'_>) -> Result<Vec<Case>> + 'a,
    ) -> Plan<'a> {
        let (software, warnings) = (Vec::new(), Vec::new());
        let (options, compete) = (vellum::Options::default(), Box::new(compete));
        Plan { options, software, bytes, turns, warnings, compete }
    }
}

fn run(name: &str, scope: &Scope, plan: Plan<'_>, progress: &mut dyn Progress) -> Result<Report> {
    let mut conditions = Conditions::now(&scope.directory, &plan.options);
    conditions.software = plan.software;
    conditions.scratch = scope.making.lines();
    let home = place::home(&scope.directory)?;
    let mut warnings = load_warning(&conditions);
    warnings.extend(plan.warnings);
    warnings.iter().for_each(|warning| progress.event(&Event::Warning(warning)));
    let steps = scope.places() * plan.turns as u64 * u64::from(scope.rounds + 1);
    progress.event(&Event::Started { steps });
    let places = Places { home: home.path(), scope, bytes: plan.bytes };
    let (mut cases, mut noticed, mut tallies) = (Vec::new(), Vec::new(), Vec::new());
    let visited = places.visit(&mut warnings, progress, &mut |place, progress| {
        let mut arena = Arena::new(place, scope.rounds, progress, &mut noticed);
        cases.extend((plan.compete)(&mut arena)?);
        tallies.push(arena.tally);
        Ok(())
    });
    progress.event(&Event::Finished);
    warnings.extend(noticed);
    if interrupt::is_asked() {
        // Whatever else went wrong may come of that.
        warnings.push(interrupted_after(&tallies, scope.places())?);
        let untouched = Error::interrupted().to_string();
        cases.retain(|case| case.skipped.as_ref() != Some(&untouched));
    } else {
        visited?;
        home.close().context(|| "remove the directory of the run")?;
    }
    Ok(Report::new(name, conditions, scope.rounds, warnings, cases))
}

/// The sentence in the report of a run that was asked to end; an error if it has nothing to report.
/// All places should have as many rounds as the first one.
fn interrupted_after(tallies: &[Tally], places: u64) -> Result<String> {
    let finished: u64 = tallies.iter().map(|tally| tally.finished).sum();
    match tallies.first().filter(|_| finished > 0) {
        Some(Tally { planned, .. }) => {
            Ok(format!("{INTERRUPTED} after {finished} of {} rounds", planned * places))
        }
        None => Err(Error::interrupted()),
    }
}

/// Returns an error if a value is given twice.
pub(crate) fn check_unique<T: PartialEq + std::fmt::Display>(all: &[T], what: &str) -> Result<()> {
    let is_second = |(index, one): &(usize, &T)| all[..*index].contains(one);
    match all.iter().enumerate().find(is_second) {
        Some((_, one)) => Err(Error::invalid(format!("the {what} {one} is given twice"))),
        None => Ok(()),
    }
}

/// Returns an error if a name is not `known`; `is_none` is the verb of its message.
pub(crate) fn check_known(names: &[String], known: &[&str], is_none: &str) -> Result<()> {
    match names.iter().find(|name| !known.contains(&name.as_str())) {
        Some(name) => {
            let known = known.join(", ");
            Err(Error::invalid(format!("\"{name}\" {is_none}; there are {known}")))
        }
        None => Ok(()),
    }
}

/// A warning if other programs share the machine.
pub(crate) fn load_warning(conditions: &Conditions) -> Vec<String> {
    let load = conditions.load_average.map(|[load, ..]| load).filter(|load| *load > LOAD_MAX);
    let warning = load.map(|load| {
        let cores = conditions.machine.cores.unwrap_or(1);
        format!(
            "the load average was {load:.2} before the start: other work shares the {cores} cores"
        )
    });
    warning.into_iter().collect()
}

/// Syncs the filesystem of `dir`, so that no round pays for earlier writes.
pub(crate) fn settle(dir: &Path) -> Result<()> {
    let dir_file = File::open(dir).context(|| format!("open {}", dir.display()))?;
    rustix::fs::syncfs(&dir_file).context(|| format!("sync the filesystem of {}", dir.display()))
}
