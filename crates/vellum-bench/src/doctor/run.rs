//! A run: look around, make files, take turns, try single calls, judge.

use std::io;
use std::time::{Duration, Instant};

use vellum_command::private_dir::PrivateDir;

use super::causes::{self, is_flat};
use super::diagnosis::{self, Diagnosis};
use super::evidence::{Finding, FlatOut};
use super::judging::{self, Known, Seen};
use super::machine::{Moment, OtherIo, Processors, others};
use super::program::Program;
use super::schedule::{Schedule, shares};
use super::series::{Series, Tick, median};
use super::slice::{self, Order};
use super::spark::sparkline;
use super::target::Target;
use super::trials::{Probe, Trials};
use super::verdict::Places;
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
/// So do experiments …
const TRIALS_SHARE: u32 = 10;
/// … and so many rests of the disk, each of them one part of so many, and not longer than this.
const RESTS: u32 = 4;
const REST_SHARE: u32 = 40;
const REST_MAX: Duration = Duration::from_secs(2);
/// What comes before anything is counted is seen in so many times finer ticks.
const EARLY_TICKS: u32 = 10;
/// A run as fast as it goes, and one at half of that pace, are not longer than this …
const FLAT_OUT_MAX: Duration = Duration::from_secs(3);
/// … and each no longer than one part of so many of the time.
const FLAT_OUT_SHARE: u32 = 20;
const FLAT_OUT_TICKS: u32 = 8;
/// In the end all that is in place is looked for, for no longer than one part of so many.
const READING_SHARE: u32 = 20;

/// A program, its files, and what was measured.
struct Patient<'a> {
    program: &'a Program,
    /// How long its turns are, against the mean of all.
    share: f64,
    targets: Vec<Target>,
    /// Its turns in which processors were idle; in the end all turns, if these are too few.
    series: Series,
    /// Its turns in which others used the processors.
    busy: Series,
    /// What the processors did in its turns, with idle processors and without.
    processors: [Vec<Processors>; 2],
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
    let trials = Trials::make(home.dir());
    let begun = Instant::now();
    let mut ward = Ward { patients, schedule, disks, begun, others: Vec::new(), trials };
    let turns = u64::from(schedule.rounds) + schedule.warm_up_slices();
    let steps = names.len() as u64 * turns + 1;
    progress.event(&Event::Started { steps });
    let rounds = ward.rounds(config.time, progress);
    let interruption =
        is_asked().then(|| format!("{INTERRUPTED} after {rounds} of {} rounds", schedule.rounds));
    if interruption.is_some() && !ward.has_measured() {
        return Err(Error::interrupted());
    }
    let flat_out = ward.tried(config.time, progress);
    ward.read_again(config.time);
    progress.event(&Event::Finished);
    let places = Places::of(&config.shown, &surroundings);
    let around = ward.around(&surroundings);
    let probe = ward.probe();
    let judged = ward.judged(config, &around, flat_out.as_ref(), &places);
    let stays = home.close().err().map(|error| format!("the directory of the run stays: {error}"));
    let time = match &interruption {
        Some(_) => config.time.min(ward.begun.elapsed()),
        None => config.time,
    };
    let others = ward.others;
    let warnings = interruption.into_iter().chain(stays).collect();
    let known = diagnosis::Known { surroundings, probe, others, time, warnings };
    Ok(Diagnosis::new(conditions, rounds, judged, known, &config.accepted))
}

/// The files of all programs.
fn admitted<'a>(config: &'a Config, home: &PrivateDir) -> Result<Vec<Patient<'a>>> {
    let files: u32 = config.programs.iter().map(|program| program.pattern.threads).sum();
    let bytes_max = free_bytes(home.path())? / FREE_SHARE / u64::from(files.max(1));
    let patience = config.time / MAKING_SHARE / files.max(1);
    let shares = shares(&config.programs);
    let patients = config.programs.iter().zip(shares).map(|(program, share)| {
        let mut patient = Patient {
            program,
            share,
            targets: Vec::new(),
            series: Series::default(),
            busy: Series::default(),
            processors: Default::default(),
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
    fn has_failed(&self) -> bool {
        !self.series.failures.is_empty()
    }

    fn order(&self, length: Duration) -> Order {
        let pattern = &self.program.pattern;
        let every = Some(pattern.sync_every_ms).filter(|every| *every > 0);
        let flush_every = every.map(Duration::from_millis);
        Order { length, rate: pattern.rate, alone: pattern.alone, flush_every }
    }

    /// A turn that is counted.
    fn turn(&mut self, length: Duration, tick: Duration, begun: Instant) {
        let length = length.mul_f64(self.share);
        let order = self.order(length);
        let (at, moment) = (begun.elapsed(), Moment::now());
        let slice = slice::run(&mut self.targets, order);
        let writing = length.as_secs_f64() * self.targets.len().max(1) as f64;
        let waiting = slice.waited.as_secs_f64() / writing;
        let processors = Processors { waiting, ..moment.since() };
        let is_busy = processors.are_scarce();
        self.processors[usize::from(is_busy)].push(processors);
        let series = if is_busy { &mut self.busy } else { &mut self.series };
        let millis = |time: Duration| time.as_secs_f64() * 1e3;
        series.add(millis(at), millis(tick), &slice.operations, &slice.flushes);
        self.series.failures.extend(slice.failure);
    }

    /// A turn before anything is counted.
    fn warm_up(&mut self, length: Duration, tick: Duration, begun: Instant) {
        let length = length.mul_f64(self.share);
        let (order, at) = (self.order(length), begun.elapsed());
        let slice = slice::run(&mut self.targets, order);
        let millis = |time: Duration| time.as_secs_f64() * 1e3;
        self.series.add_early(millis(at), millis(tick), &slice.operations);
        self.series.failures.extend(slice.failure);
    }

    /// Leaves out the turns in which others used the processors, if most turns were without them:
    /// what differs between the two is no fault of the disk.
    fn settle(&mut self) {
        let [idle, busy] = &mut self.processors;
        if busy.len() >= idle.len() {
            idle.append(busy);
            self.series.absorb(std::mem::take(&mut self.busy));
        }
    }

    fn seen(&self) -> Seen<'_> {
        let [counted, left_out] = &self.processors;
        let middle = |figure: fn(&Processors) -> f64| {
            median(&counted.iter().map(figure).collect::<Vec<f64>>())
        };
        let processors = Processors {
            own: middle(|one| one.own),
            others: middle(|one| one.others),
            stolen: middle(|one| one.stolen),
            waiting: middle(|one| one.waiting),
        };
        let left_out = (left_out.len(), left_out.len() + counted.len());
        Seen { program: self.program, series: &self.series, processors, left_out }
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

    /// Writes as fast as it goes, or at a pace, beside what is counted.
    fn tried(&mut self, length: Duration, rate: Option<f64>) -> Series {
        let order = Order { rate, alone: true, ..self.order(length) };
        let slice = slice::run(&mut self.targets, order);
        let mut series = Series::default();
        let tick = length / FLAT_OUT_TICKS;
        series.add(0.0, tick.as_secs_f64() * 1e3, &slice.operations, &slice.flushes);
        self.series.failures.extend(slice.failure);
        series
    }
}

/// All programs of a run.
struct Ward<'a> {
    patients: Vec<Patient<'a>>,
    schedule: Schedule,
    disks: Vec<String>,
    begun: Instant,
    others: Vec<OtherIo>,
    /// An error where they could not be made.
    trials: io::Result<Trials>,
}

impl Ward<'_> {
    /// How many rounds were whole.
    fn rounds(&mut self, time: Duration, progress: &mut dyn Progress) -> u32 {
        let rounds = self.schedule.rounds;
        for round in 0..=rounds {
            self.round(round, progress);
            if is_asked() {
                return round.saturating_sub(1);
            }
            if let Ok(trials) = &mut self.trials {
                trials.portion(time / TRIALS_SHARE / (rounds + 1));
                if round % rounds.div_ceil(RESTS) == 0 {
                    trials.rest((time / REST_SHARE).min(REST_MAX));
                }
            }
        }
        rounds
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
        let has_measured = |series: &Series| series.operations() > 0;
        self.patients.iter().any(|one| has_measured(&one.series) || has_measured(&one.busy))
    }

    /// What is tried after the rounds, unless the run is to end: the first program that waits
    /// writes as fast as it goes. A throttled disk is fast while less is asked of it.
    fn tried(&mut self, time: Duration, progress: &mut dyn Progress) -> Option<FlatOut> {
        let is_fit = |one: &&mut Patient<'_>| one.program.waits() && !one.has_failed();
        let patient = self.patients.iter_mut().find(is_fit).filter(|_| !is_asked())?;
        progress.event(&Event::Measuring { what: "as fast as it goes" });
        let length = (time / FLAT_OUT_SHARE).min(FLAT_OUT_MAX);
        let fastest = patient.tried(length, None);
        let rate = is_flat(&fastest).then(|| median(&fastest.all(Tick::per_second)) / 2.0);
        let halved = rate.map(|rate| patient.tried(length, Some(rate)));
        Some(FlatOut { fastest, halved })
    }

    /// Looks for a sample of all that is in place: what was there once can be lost later.
    fn read_again(&mut self, time: Duration) {
        let files: usize = self.patients.iter().map(|one| one.targets.len()).sum();
        let patience = time / READING_SHARE / files.max(1) as u32;
        for Patient { targets, series, .. } in &mut self.patients {
            if series.failures.is_empty() {
                let lost = |target: &mut Target| {
                    target.check_again(patience).err().map(|what| target.lost(what))
                };
                series.failures.extend(targets.iter_mut().filter_map(lost));
            }
        }
    }

    fn probe(&self) -> Option<Probe> {
        self.trials.as_ref().ok().and_then(Trials::probe)
    }

    /// The causes around the disk, and an experiment that failed where no program did.
    fn around(&self, surroundings: &Surroundings) -> Vec<Finding> {
        let mut around = causes::around(surroundings);
        if !self.patients.iter().any(Patient::has_failed) {
            let failure = self.trials.as_ref().map_or_else(Some, Trials::failure);
            around.extend(failure.and_then(causes::failed_beside));
        }
        around
    }

    fn judged(
        &mut self,
        config: &Config,
        around: &[Finding],
        flat_out: Option<&FlatOut>,
        places: &Places,
    ) -> Vec<Judged> {
        self.patients.iter_mut().for_each(Patient::settle);
        let seen: Vec<Seen<'_>> = self.patients.iter().map(Patient::seen).collect();
        let probe = self.probe();
        let (others, accepted) = (&self.others, &config.accepted);
        judging::all(&seen, &Known { around, probe, flat_out, others, accepted, places })
    }
}
