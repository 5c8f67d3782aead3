//! Suite `append`: many processes append to one log; what does a record cost?
//!
//! For each setting every way runs once in each round, one after the other (A B C … A B C …), so
//! that whatever changes on the machine meanwhile meets all of them. The first round is not
//! counted. A round is: make an empty log, let the filesystem settle, fork, clock, append, clock,
//! read everything back and verify it, delete, settle. A way whose data is not exactly what was
//! appended fails, and has no numbers at all.
//!
//! Under the clock a way pays for nothing but its appends and 1 to 4 ns for making each record
//! (measured with a way that does nothing); starting the processes costs a run less than 0.2 ms.

use std::path::PathBuf;
use std::time::Duration;

use crate::conditions::Conditions;
use crate::error::{Context, Error, Result};
use crate::place::{self, Place, Places};
use crate::progress::{Event, Progress, Stage};
pub use crate::report::append::Case;
use crate::scratch::ScratchKind;
use crate::setting::Setting;
use crate::ways::{Way, WayName};

mod limits;
pub(crate) mod round;
mod warnings;

use round::Sample;

/// The report of this suite.
pub type Report = crate::report::Report<Case>;

/// A quick run appends so small a part of the records.
const QUICK_SHARE: u64 = 5;

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
    /// How much; the default is [`Setting::PUBLISHED`].
    pub settings: Vec<Setting>,
    /// Which ways, in the order of their turns; the default is all. There are ratios only if
    /// [`WayName::Write`] is among them.
    pub ways: Vec<WayName>,
    /// How many rounds are counted, after one that is not; the default is 5.
    pub rounds: u32,
    /// The options of the Vellum logs; layout and creation are set by the ways.
    pub vellum: vellum::Options,
    /// No single measurement may take longer; the default is ten minutes. Then its processes are
    /// killed and the way has failed.
    pub limit: Duration,
}

impl Config {
    /// The published settings, the usual ways, five rounds, in `directory`.
    pub fn new(directory: impl Into<PathBuf>) -> Config {
        Config {
            directory: directory.into(),
            in_directory: true,
            scratch: Vec::new(),
            settings: Setting::PUBLISHED.to_vec(),
            ways: WayName::usual(),
            rounds: 5,
            vellum: vellum::Options::new().advice(false),
            limit: Duration::from_secs(600),
        }
    }

    /// The same with a fifth of the records, two rounds, and without the slow ways: seconds.
    pub fn quick(directory: impl Into<PathBuf>) -> Config {
        let mut config = Config::new(directory);
        use WayName::{Stdio, VellumFramed, VellumText, Write, Writev};
        config.rounds = 2;
        config.ways = vec![VellumFramed, VellumText, Write, Writev, Stdio];
        for setting in &mut config.settings {
            setting.records /= QUICK_SHARE;
        }
        config
    }

    fn check(&self) -> Result<()> {
        if self.settings.is_empty() || self.ways.is_empty() || self.rounds == 0 {
            return Err(Error::invalid("at least one setting, one way and one round are needed"));
        }
        for (index, way) in self.ways.iter().enumerate() {
            if self.ways[..index].contains(way) {
                return Err(Error::invalid(format!("the way {way} is given twice")));
            }
        }
        self.settings.iter().try_for_each(Setting::check)
    }

    /// What the largest log takes.
    fn disk_bytes_max(&self) -> u64 {
        let ways: Vec<Box<dyn Way>> = self.ways.iter().map(|way| way.way(&self.vellum)).collect();
        let bytes = |setting| ways.iter().map(|way| way.disk_bytes(setting)).max().unwrap_or(0);
        self.settings.iter().map(bytes).max().unwrap_or(0)
    }

    /// How many steps there are in each place, if no way is left out.
    fn steps(&self) -> u64 {
        let stages = 2 + u64::from(self.rounds);
        self.settings.len() as u64 * self.ways.len() as u64 * stages
    }
}

/// Measures what `config` says and tells `progress` how it goes.
///
/// Forks: best called from a process with no other thread. A way that fails, or that disk or memory
/// would not hold, is in the report with the reason and does not end the run.
///
/// # Errors
///
/// Nothing was run if the configuration makes no sense. A run ends early if its directory can't be
/// used.
///
/// # Cost
///
/// The default takes about eight minutes, two gigabytes of disk at a time and twenty gigabytes of
/// writes to the device, nearly all of it for [`WayName::Direct`]; the other ways together take
/// half a minute. A run that is killed leaves its directory, `vellum-bench-` and some letters.
pub fn run(config: &Config, progress: &mut dyn Progress) -> Result<Report> {
    config.check()?;
    ScratchKind::check(&config.scratch)?;
    let conditions = Conditions::now(&config.directory, &config.vellum);
    let home = place::home(&config.directory)?;
    let places = Places {
        home: home.path(),
        in_directory: config.in_directory,
        scratch: &config.scratch,
        bytes: config.disk_bytes_max(),
    };
    places.check()?;
    let mut warnings = warnings::before(config, &conditions);
    for warning in &warnings {
        progress.event(&Event::Warning(warning));
    }
    let steps = places.count() * config.steps();
    progress.event(&Event::Started { steps });
    let (mut cases, mut noticed) = (Vec::new(), Vec::new());
    places.visit(&mut warnings, progress, &mut |place, progress| {
        let mut run = Run { config, place, progress, warnings: &mut noticed };
        let ways = run.probe_ways()?;
        for setting in &config.settings {
            cases.extend(run.contest(setting, &ways)?);
        }
        Ok(())
    })?;
    progress.event(&Event::Finished);
    warnings.extend(noticed);
    home.close().context(|| "remove the directory of the run")?;
    Ok(Report { suite: "append", conditions, rounds: config.rounds, warnings, cases })
}

/// A way, and why it can't run here if it can't.
struct Entry {
    name: WayName,
    way: Box<dyn Way>,
    skipped: Option<String>,
}

/// How a way does in one setting.
struct Entrant<'a> {
    entry: &'a Entry,
    samples: Vec<Sample>,
    /// Why it can't run in this setting.
    skipped: Option<String>,
    failed: Option<String>,
    syscalls: Option<std::result::Result<f64, String>>,
}

/// The run in one place.
struct Run<'a> {
    config: &'a Config,
    place: &'a Place<'a>,
    progress: &'a mut dyn Progress,
    warnings: &'a mut Vec<String>,
}

impl Run<'_> {
    fn warn(&mut self, warning: String) {
        self.progress.event(&Event::Warning(&warning));
        self.warnings.push(warning);
    }

    fn probe_ways(&mut self) -> Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for name in self.config.ways.iter().copied() {
            let way = name.way(&self.config.vellum);
            let dir = self.place.dir.join("probe");
            std::fs::create_dir(&dir).context(|| format!("make {}", dir.display()))?;
            let skipped = way.probe(&dir).err();
            std::fs::remove_dir_all(&dir).context(|| format!("remove {}", dir.display()))?;
            if let Some(reason) = &skipped {
                self.progress.event(&Event::Skipped { way: name.as_str(), reason });
            }
            entries.push(Entry { name, way, skipped });
        }
        Ok(entries)
    }

    /// All ways against each other in one setting.
    fn contest(&mut self, setting: &Setting, entries: &[Entry]) -> Result<Vec<Case>> {
        let mut entrants: Vec<Entrant<'_>> =
            entries.iter().map(|entry| self.entrant(setting, entry)).collect();
        let rounds = (1..=self.config.rounds).map(Stage::Round);
        for stage in [Stage::Trace, Stage::WarmUp].into_iter().chain(rounds) {
            for entrant in &mut entrants {
                if entrant.is_good() {
                    self.step(setting, stage, entrant)?;
                } else {
                    self.progress.event(&Event::Omitted { steps: 1 });
                }
            }
        }
        let write_ns: Option<Vec<f64>> = entrants
            .iter()
            .find(|entrant| entrant.entry.name == WayName::Write && entrant.is_good())
            .map(|write| write.ns_per_record(setting));
        let case = |entrant: &Entrant<'_>| entrant.case(self.place, setting, write_ns.as_deref());
        let cases: Vec<Case> = entrants.iter().map(case).collect();
        for warning in warnings::after(&cases) {
            self.warn(warning);
        }
        Ok(cases)
    }

    /// A way as it comes to a setting: left out where disk or memory would not hold it.
    fn entrant<'a>(&mut self, setting: &Setting, entry: &'a Entry) -> Entrant<'a> {
        let probed = entry.skipped.clone();
        let skipped = probed.or_else(|| {
            let reason = limits::reason(setting, self.place, entry)?;
            self.progress.event(&Event::Skipped { way: entry.name.as_str(), reason: &reason });
            Some(reason)
        });
        Entrant { entry, samples: Vec::new(), skipped, failed: None, syscalls: None }
    }

    /// One measurement. An error of the way is noted in the entrant; an error of the place, which
    /// would meet every other way as well, ends the run.
    fn step(&mut self, setting: &Setting, stage: Stage, entrant: &mut Entrant<'_>) -> Result<()> {
        let name = entrant.entry.name.as_str();
        self.progress.event(&Event::Step { setting: *setting, way: name, stage });
        let dir = self.place.dir.join(name);
        std::fs::create_dir(&dir).context(|| format!("make {}", dir.display()))?;
        let way = entrant.entry.way.as_ref();
        let limit = self.config.limit;
        let result = match stage {
            Stage::Trace => {
                let syscalls = round::count_syscalls(way, setting, &dir, limit);
                entrant.syscalls = Some(syscalls.map_err(|error| error.to_string()));
                Ok(())
            }
            Stage::WarmUp => round::measure(way, setting, &dir, limit).map(drop),
            Stage::Round(_) => {
                round::measure(way, setting, &dir, limit).map(|sample| entrant.samples.push(sample))
            }
        };
        std::fs::remove_dir_all(&dir).context(|| format!("remove {}", dir.display()))?;
        crate::suite::settle(self.place.dir)?;
        if let Err(error) = result {
            let reason = error.to_string();
            self.progress.event(&Event::Failed { setting: *setting, way: name, reason: &reason });
            entrant.failed = Some(reason);
        }
        Ok(())
    }
}

impl Entrant<'_> {
    fn is_good(&self) -> bool {
        self.failed.is_none() && self.skipped.is_none()
    }

    fn ns_per_record(&self, setting: &Setting) -> Vec<f64> {
        let records = setting.total_records() as f64;
        self.samples.iter().map(|sample| sample.wall_ns as f64 / records).collect()
    }

    /// The result. `write_ns` is what `write` needed, round by round, if it ran well.
    fn case(&self, place: &Place<'_>, setting: &Setting, write_ns: Option<&[f64]>) -> Case {
        let ns = if self.is_good() { self.ns_per_record(setting) } else { Vec::new() };
        let ratios: Vec<f64> = write_ns
            .unwrap_or_default()
            .iter()
            .zip(&ns)
            .map(|(write_ns, way_ns)| write_ns / way_ns)
            .collect();
        let records = setting.total_records() as f64;
        let samples = if self.is_good() { self.samples.as_slice() } else { &[] };
        let faults = samples.iter().map(|sample| sample.page_faults as f64 / records).collect();
        let syscalls = self.syscalls.clone().filter(|_| self.is_good());
        Case {
            name: self.entry.name,
            filesystem: place.filesystem.to_string(),
            scratch: place.is_scratch,
            processes: setting.processes,
            records: setting.records,
            bytes: setting.bytes,
            ns_per_record: ns,
            ratio_to_write: ratios,
            syscalls_per_record: syscalls.clone().and_then(std::result::Result::ok),
            syscalls_reason: syscalls.and_then(std::result::Result::err),
            page_faults_per_record: faults,
            verified: self.is_good(),
            skipped: self.skipped.clone(),
            failed: self.failed.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
