//! A run: look around, make files, take turns, try single calls, judge.

use std::time::{Duration, Instant};

use vellum_command::private_dir::PrivateDir;

use super::causes::{self, is_flat};
use super::diagnosis::{Diagnosis, Known};
use super::evidence::{Evidence, Finding, Weight};
use super::machine::{Moment, OtherIo, Processors, others};
use super::probe::{Probe, probe};
use super::program::{Figure, Program, SyncCall};
use super::schedule::Schedule;
use super::series::{Series, median};
use super::slice::{self, Order};
use super::spark::sparkline;
use super::target::Target;
use super::verdict::{Places, judge};
use super::{Config, Judged};
use crate::advise::Surroundings;
use crate::conditions::{Conditions, free_bytes};
use crate::error::{Context, Error, Result};
use crate::interrupt::is_asked;
use crate::progress::{Event, Progress};
use crate::report::INTERRUPTED;
use crate::suite::check_unique;

/// All files together never take more of the free space than one part of so many.
const FREE_SHARE: u64 = 10;
/// Making files takes no more of the time than one part of so many.
const MAKING_SHARE: u32 = 10;
/// So does trying single calls.
const PROBE_SHARE: u32 = 30;
/// What comes before anything is counted is seen in so many times finer ticks.
const EARLY_TICKS: u32 = 10;
/// A run at half of the pace is not longer than this.
const PACED_MAX: Duration = Duration::from_secs(3);

/// A program, its files, and what was measured.
struct Patient<'a> {
    program: &'a Program,
    targets: Vec<Target>,
    series: Series,
    paced: Option<Series>,
    /// What the processors did in each of its slices.
    processors: Vec<Processors>,
}

/// Looks around in `config.directory`, has each program write there for a while, and says whether
/// the disk is good enough for it. Tells `progress` how it goes.
///
/// Forks once, before it has a thread. A write that fails is part of the answer, not an error.
/// Where runs are to end ([`end_runs_when_readable`](crate::end_runs_when_readable)), the answer is
/// that of what was measured until then.
///
/// # Errors
///
/// The directory can't be used, no program and no time is given, or the run was to end before
/// anything was measured.
///
/// # Cost
///
/// About `config.time`; a tenth of the free space.
pub fn run(config: &Config, progress: &mut dyn Progress) -> Result<Diagnosis> {
    let names: Vec<&str> = config.programs.iter().map(|program| program.name.as_str()).collect();
    if names.is_empty() || config.time.is_zero() {
        return Err(Error::invalid("a program and some time are needed"));
    }
    check_unique(&names, "program")?;
    let conditions = Conditions::now(&config.directory, &vellum::Options::default());
    let home = PrivateDir::new(&config.directory, "vellum-doctor-")
        .context(|| format!("make a directory in {}", config.directory.display()))?;
    let surroundings = Surroundings::of(home.path())?;
    let disks = surroundings.disks.iter().map(|disk| disk.name.clone()).collect();
    let schedule = Schedule::of(config.time, names.len() as u32);
    let patients = admitted(config, &home)?;
    let mut ward = Ward { patients, schedule, disks, begun: Instant::now(), others: Vec::new() };
    let turns = u64::from(schedule.rounds) + schedule.warm_up_slices();
    let steps = names.len() as u64 * turns + 1;
    progress.event(&Event::Started { steps });
    let rounds = ward.rounds(progress);
    let interruption =
        is_asked().then(|| format!("{INTERRUPTED} after {rounds} of {} rounds", schedule.rounds));
    if interruption.is_some() && !ward.has_measured() {
        return Err(Error::interrupted());
    }
    let probe = ward.tried(config.time, &home, progress);
    progress.event(&Event::Finished);
    let places = Places::of(&config.shown, &surroundings);
    let around = causes::around(&surroundings);
    let judged = ward.judged(config, &around, probe, &places);
    home.close().context(|| "remove the directory of the run")?;
    let time = match interruption {
        Some(_) => config.time.min(ward.begun.elapsed()),
        None => config.time,
    };
    let known = Known { surroundings, probe, others: ward.others, time, interruption };
    Ok(Diagnosis::new(conditions, rounds, judged, known, &config.accepted))
}

/// The files of all programs.
fn admitted<'a>(config: &'a Config, home: &PrivateDir) -> Result<Vec<Patient<'a>>> {
    let files: u32 = config.programs.iter().map(|program| program.pattern.threads).sum();
    let bytes_max = free_bytes(home.path())? / FREE_SHARE / u64::from(files.max(1));
    let patience = config.time / MAKING_SHARE / files.max(1);
    let patients = config.programs.iter().map(|program| {
        let mut patient = Patient {
            program,
            targets: Vec::new(),
            series: Series::default(),
            paced: None,
            processors: Vec::new(),
        };
        for index in 0..program.pattern.threads {
            let name = format!("{}-{index}", program.name);
            match Target::make(home.dir(), &name, &program.pattern, bytes_max, patience) {
                Ok(target) => patient.targets.push(target),
                Err(failure) => {
                    patient.series.failures.push(failure);
                    break;
                }
            }
        }
        patient
    });
    Ok(patients.collect())
}

impl Patient<'_> {
    /// Does it wait for the disk at each write?
    fn waits(&self) -> bool {
        self.program.pattern.sync != SyncCall::Periodic
    }

    fn has_failed(&self) -> bool {
        !self.series.failures.is_empty()
    }

    fn order(&self, length: Duration) -> Order {
        let pattern = &self.program.pattern;
        let every = Some(pattern.sync_every_ms).filter(|every| *every > 0);
        Order { length, rate: pattern.rate, flush_every: every.map(Duration::from_millis) }
    }

    /// A turn that is counted.
    fn turn(&mut self, length: Duration, tick: Duration, begun: Instant) {
        let order = self.order(length);
        let (at, moment) = (begun.elapsed(), Moment::now());
        let slice = slice::run(&mut self.targets, order);
        let writing = length.as_secs_f64() * self.targets.len().max(1) as f64;
        let waiting = slice.waited.as_secs_f64() / writing;
        self.processors.push(Processors { waiting, ..moment.since() });
        let millis = |time: Duration| time.as_secs_f64() * 1e3;
        self.series.add(millis(at), millis(tick), &slice.operations, &slice.flushes);
        self.series.failures.extend(slice.failure);
    }

    /// A turn before anything is counted.
    fn warm_up(&mut self, length: Duration, tick: Duration, begun: Instant) {
        let (order, at) = (self.order(length), begun.elapsed());
        let slice = slice::run(&mut self.targets, order);
        let millis = |time: Duration| time.as_secs_f64() * 1e3;
        self.series.add_early(millis(at), millis(tick), &slice.operations);
        self.series.failures.extend(slice.failure);
    }

    /// The middle of all its slices.
    fn processors(&self) -> Processors {
        let middle = |figure: fn(&Processors) -> f64| {
            median(&self.processors.iter().map(figure).collect::<Vec<f64>>())
        };
        Processors {
            own: middle(|one| one.own),
            others: middle(|one| one.others),
            stolen: middle(|one| one.stolen),
            waiting: middle(|one| one.waiting),
        }
    }

    /// What a progress bar tells: how it goes so far.
    fn told(&self) -> String {
        let name = &self.program.name;
        match self.series.ticks.last() {
            None => name.clone(),
            Some(last) => {
                let line = sparkline(&self.series.ticks, 20);
                format!("{name} {line} p99 {:.2} ms", last.p99_us / 1e3)
            }
        }
    }

    /// Is it worth a look whether the disk is throttled?
    fn may_be_throttled(&self) -> bool {
        let pattern = &self.program.pattern;
        let is_closed = pattern.rate.is_none() && pattern.sync != SyncCall::Periodic;
        is_closed && !self.has_failed() && is_flat(&self.series)
    }
}

/// All programs of a run.
struct Ward<'a> {
    patients: Vec<Patient<'a>>,
    schedule: Schedule,
    disks: Vec<String>,
    begun: Instant,
    others: Vec<OtherIo>,
}

impl Ward<'_> {
    /// How many rounds were whole.
    fn rounds(&mut self, progress: &mut dyn Progress) -> u32 {
        for round in 0..=self.schedule.rounds {
            self.round(round, progress);
            if is_asked() {
                return round.saturating_sub(1);
            }
        }
        self.schedule.rounds
    }

    fn round(&mut self, round: u32, progress: &mut dyn Progress) {
        let Schedule { slice, warm_up, pause, tick, .. } = self.schedule;
        for patient in &mut self.patients {
            progress.event(&Event::Measuring { what: &patient.told() });
            if patient.has_failed() {
                continue;
            }
            if round == 0 {
                patient.warm_up(warm_up, tick / EARLY_TICKS, self.begun);
                progress.event(&Event::Passed { steps: self.schedule.warm_up_slices() - 1 });
            } else {
                self.others.push(others(&self.disks, pause));
                patient.turn(slice, tick, self.begun);
            }
            if is_asked() {
                return;
            }
        }
    }

    fn has_measured(&self) -> bool {
        self.patients.iter().any(|patient| patient.series.operations() > 0)
    }

    /// What is tried after the rounds, unless the run is to end.
    fn tried(
        &mut self,
        time: Duration,
        home: &PrivateDir,
        progress: &mut dyn Progress,
    ) -> Option<Probe> {
        if is_asked() {
            return None;
        }
        progress.event(&Event::Measuring { what: "single calls" });
        let probe = probe(home.dir(), time / PROBE_SHARE);
        self.at_half_the_pace(time);
        probe
    }

    /// A throttled disk is fast while less is asked of it.
    fn at_half_the_pace(&mut self, time: Duration) {
        let (length, tick) = ((time / 10).min(PACED_MAX), self.schedule.tick);
        for patient in self.patients.iter_mut().filter(|patient| patient.may_be_throttled()) {
            let rate = median(&patient.series.all(|tick| tick.per_second())) / 2.0;
            let order = Order { rate: Some(rate), ..patient.order(length) };
            let slice = slice::run(&mut patient.targets, order);
            let mut paced = Series::default();
            paced.add(0.0, tick.as_secs_f64() * 1e3, &slice.operations, &slice.flushes);
            patient.paced = Some(paced);
        }
    }

    fn judged(
        &mut self,
        config: &Config,
        around: &[Finding],
        probe: Option<Probe>,
        places: &Places,
    ) -> Vec<Judged> {
        let others = &self.others;
        let seen: Vec<Vec<Finding>> = self
            .patients
            .iter()
            .map(|patient| {
                let evidence = Evidence {
                    program: patient.program,
                    series: &patient.series,
                    paced: patient.paced.as_ref(),
                    processors: patient.processors(),
                    others,
                    probe,
                };
                causes::causes(&evidence, around)
            })
            .collect();
        let waits = self.patients.iter().filter(|patient| patient.waits());
        let longest = waits.filter_map(|patient| patient.series.figure_ms(Figure::Max));
        let longest = longest.max_by(f64::total_cmp);
        let shared: Vec<Vec<Finding>> =
            (0..seen.len()).map(|own| self.of_disk(own, &seen)).collect();
        let judged = self.patients.drain(..).zip(shared).map(|(patient, causes)| {
            let longest = longest.filter(|_| patient.waits());
            judge(patient.program, patient.series, causes, &config.accepted, longest, places)
        });
        judged.collect()
    }

    /// The findings in the turns of the program `own`, and findings of other turns about the disk.
    fn of_disk(&self, own: usize, seen: &[Vec<Finding>]) -> Vec<Finding> {
        let mut causes = seen[own].clone();
        for (patient, others) in self.patients.iter().zip(seen) {
            for finding in others.iter().filter(|one| one.cause.is_of_disk()) {
                let is_known = causes.iter().any(|one| one.cause == finding.cause);
                let hurts = finding.weight == Weight::Danger || self.patients[own].waits();
                if !is_known && hurts {
                    let what = format!("while {} wrote, {}", patient.program.name, finding.what);
                    causes.push(Finding::new(finding.cause, finding.weight, what));
                }
            }
        }
        causes.sort_by_key(|one| (one.weight, one.cause));
        causes
    }
}
