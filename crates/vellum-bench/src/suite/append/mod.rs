//! Suite `append`: many processes append to one log; the cost of a record.
//!
//! For each setting every way runs once in each round, one after the other, so that whatever
//! changes on the machine meanwhile meets all of them. The first round is not
//! counted. A round is: make an empty log, let the filesystem settle, fork, clock, append, clock,
//! read everything back and verify it, delete, settle. A way whose data is not exactly what was
//! appended fails, and has no numbers at all.
//!
//! Under the clock a way pays for nothing but its appends and 1 to 4 ns for making each record
//! (measured with a way that does nothing); starting the processes costs a run less than 0.2 ms.
//! With other work between the appends each is timed alone: see `between`.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use super::foreign::Foreign;
use super::{Arena, Entrant, Plan, Scope, Suite, check_unique};
use crate::bytes::size;
use crate::error::{Context, Error, Result};
use crate::report::{Better, Case};
use crate::setting::Setting;
use crate::stats::ratios;
use crate::walk::WALK_BYTES_MAX;
use crate::ways::{Way, WayName};

mod between;
mod limits;
pub(super) mod options;
pub(crate) mod round;
mod warnings;

use round::Sample;

/// A quick run appends so small a part of the records.
const QUICK_SHARE: u64 = 5;

/// The choices of a measurement.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// Where, and how many rounds; the default is 5.
    pub scope: Scope,
    /// How much; the default is [`Setting::PUBLISHED`].
    pub settings: Vec<Setting>,
    /// Which ways, in the order of their turns; the default is all. There are ratios only if
    /// [`WayName::Write`] is among them.
    pub ways: Vec<WayName>,
    /// Over so many bytes of its own a process walks before each append, so that it finds nothing
    /// of the log in the caches that those fill; then each append is timed alone. The default is 0.
    pub between_bytes: u64,
    /// Other systems, after the ways; the default is none.
    pub others: Vec<Rc<dyn Foreign>>,
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
            scope: Scope::new(directory, 5),
            settings: Setting::PUBLISHED.to_vec(),
            ways: WayName::usual(),
            between_bytes: 0,
            others: Vec::new(),
            vellum: vellum::Options::default(),
            limit: Duration::from_secs(600),
        }
    }

    /// The same with a fifth of the records, two rounds, and without the slow ways: seconds.
    pub fn quick(directory: impl Into<PathBuf>) -> Config {
        let mut config = Config::new(directory);
        use WayName::{Stdio, VellumFramed, VellumText, Write, Writev};
        config.scope.rounds = 2;
        config.ways = vec![VellumFramed, VellumText, Write, Writev, Stdio];
        for setting in &mut config.settings {
            setting.records /= QUICK_SHARE;
        }
        config
    }

    fn check(&self) -> Result<()> {
        if self.settings.is_empty() || self.ways.is_empty() && self.others.is_empty() {
            return Err(Error::invalid("at least one setting and one way are needed"));
        }
        if self.between_bytes > WALK_BYTES_MAX {
            let most = size(WALK_BYTES_MAX);
            return Err(Error::invalid(format!("at most {most} between two appends")));
        }
        if self.between_bytes > 0 && !self.others.is_empty() {
            return Err(Error::invalid("other systems do nothing between two appends"));
        }
        check_unique(&self.ways, "way")?;
        self.settings.iter().try_for_each(Setting::check)
    }

    /// The bytes of the largest log.
    fn disk_bytes_max(&self) -> u64 {
        let ways: Vec<Box<dyn Way>> = self.ways.iter().map(|way| way.way(&self.vellum)).collect();
        let bytes = |setting| ways.iter().map(|way| way.disk_bytes(setting)).max().unwrap_or(0);
        self.settings.iter().map(bytes).max().unwrap_or(0)
    }

    /// A case of this setting, without way and numbers yet.
    fn case(&self, setting: &Setting, arena: &Arena<'_>) -> Case {
        let Setting { processes, records, bytes } = *setting;
        let between = self.between_bytes;
        let title = format!("{processes} processes × {records} records × {bytes} B");
        let case = |title: String| {
            let case = arena.case(title).key("processes", processes).key("records", records);
            case.key("bytes", bytes)
        };
        match between {
            0 => case(title),
            _ => case(format!("{title}, {} between appends", size(between)))
                .key("between bytes", between),
        }
    }

    /// All ways against each other in one setting.
    fn contest(&self, setting: &Setting, arena: &mut Arena<'_>) -> Result<Vec<Case>> {
        let mut entrants: Vec<Entrant<Racer, Sample>> = Vec::new();
        for name in &self.ways {
            let way = name.way(&self.vellum);
            let probed = arena.aside(|dir| way.probe(dir).map_err(Error::unsupported))?;
            let probed = probed
                .and_then(|()| limits::check(setting, self.between_bytes, arena.place, &*way));
            let racer = Racer { entry: Entry::Own(*name, way), syscalls: None };
            entrants.push(Entrant::new(format!("{setting} {name}"), racer, probed));
        }
        for other in &self.others {
            let missing = other.missing().map_or(Ok(()), |why| Err(Error::unsupported(why)));
            let racer = Racer { entry: Entry::Foreign(Rc::clone(other)), syscalls: None };
            entrants.push(Entrant::new(format!("{setting} {}", other.name()), racer, missing));
        }
        arena.rounds(&mut entrants, |racer, turn| {
            if turn.round == 0 {
                racer.count_syscalls(setting, turn.dir, self.limit)?;
            }
            match &racer.entry {
                Entry::Own(_, way) => {
                    round::measure(&**way, setting, self.between_bytes, turn.dir, self.limit)
                }
                Entry::Foreign(other) => {
                    round::measure_foreign(&**other, setting, turn.dir, self.limit)
                }
            }
        })?;
        for warning in entrants.iter().flat_map(|entrant| warnings::of(entrant, setting)) {
            arena.warn(warning);
        }
        let base = entrants.iter().find(|entrant| entrant.way.is(WayName::Write));
        let base = base.map_or_else(Vec::new, |entrant| ns_per_record(entrant, setting));
        let case = |entrant| entrant_case(entrant, setting, &base, self.case(setting, arena));
        Ok(entrants.iter().map(case).collect())
    }
}

impl Suite for Config {
    fn name(&self) -> &'static str {
        "append"
    }

    fn scope(&self) -> &Scope {
        &self.scope
    }

    fn scope_mut(&mut self) -> &mut Scope {
        &mut self.scope
    }

    /// # Cost
    ///
    /// The default takes about eight minutes, two gigabytes of disk at a time and twenty gigabytes
    /// of writes to the device, nearly all of it for [`WayName::Direct`]; the other ways together
    /// take half a minute.
    fn plan(&self) -> Result<Plan<'_>> {
        self.check()?;
        let plan = Plan::new(
            self.disk_bytes_max(),
            self.settings.len() * (self.ways.len() + self.others.len()),
            move |arena: &mut Arena<'_>| {
                let contests = self.settings.iter().map(|setting| self.contest(setting, arena));
                Ok(contests.collect::<Result<Vec<_>>>()?.concat())
            },
        );
        let software = self.others.iter().filter_map(|other| other.software()).collect();
        let (options, warnings) = (self.vellum.clone(), warnings::before(self));
        Ok(Plan { options, software, warnings, ..plan })
    }
}

/// A way in a setting.
struct Racer {
    entry: Entry,
    /// For each record, or why they can't be counted.
    syscalls: Option<Result<f64>>,
}

/// A way of this crate, or another system.
enum Entry {
    Own(WayName, Box<dyn Way>),
    Foreign(Rc<dyn Foreign>),
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Entry::Own(name, _) => name.fmt(f),
            Entry::Foreign(other) => other.name().fmt(f),
        }
    }
}

impl Racer {
    fn is(&self, name: WayName) -> bool {
        matches!(self.entry, Entry::Own(own, _) if own == name)
    }

    /// That they can't be counted is no reason not to measure.
    fn count_syscalls(&mut self, setting: &Setting, dir: &Path, limit: Duration) -> Result<()> {
        let Entry::Own(_, way) = &self.entry else { return Ok(()) };
        let dir = dir.join("trace");
        fs::create_dir(&dir).context(|| format!("make {}", dir.display()))?;
        self.syscalls = Some(round::count_syscalls(&**way, setting, &dir, limit));
        fs::remove_dir_all(&dir).context(|| format!("remove {}", dir.display()))
    }
}

fn ns_per_record(entrant: &Entrant<Racer, Sample>, setting: &Setting) -> Vec<f64> {
    entrant.figures(|sample| sample.wall_ns as f64 / setting.total_records() as f64)
}

/// `base` is what `write` needed, round by round, if it ran well. `case` has the setting.
fn entrant_case(
    entrant: &Entrant<Racer, Sample>,
    setting: &Setting,
    base: &[f64],
    case: Case,
) -> Case {
    let ns = ns_per_record(entrant, setting);
    let total = setting.total_records() as f64;
    // Of a program of its own they are not known.
    let faults = entrant.samples().iter().filter_map(|sample| sample.page_faults);
    let faults = faults.map(|count| count as f64 / total).collect();
    let syscalls = entrant.way.syscalls.iter().filter(|_| !ns.is_empty());
    let syscalls = syscalls.filter_map(|count| count.as_ref().ok().copied()).collect();
    // The same figure as the time in other units is not compared once more.
    let millis = entrant.figures(|sample| sample.wall_ns as f64 / 1e6);
    let throughput = ns.iter().map(|ns| setting.bytes as f64 / ns).collect();
    // Without a walk nothing is taken off.
    let clock = entrant.samples().iter().filter_map(|sample| sample.clock_ns);
    let clock = clock.map(|ns| ns as f64).collect();
    let case = case
        .key("way", &entrant.way.entry)
        .metric("time", "ns/record", Better::Lower, ns.clone())
        .metric("speed against write", "x", Better::Higher, ratios(base, &ns))
        .metric("total", "ms", Better::Neither, millis)
        .metric("throughput", "GB/s", Better::Neither, throughput)
        .metric("syscalls", "per record", Better::Lower, syscalls)
        .metric("page faults", "per record", Better::Neither, faults)
        .metric("clock, taken off", "ns/record", Better::Neither, clock);
    entrant.case(case)
}

#[cfg(test)]
mod tests;
