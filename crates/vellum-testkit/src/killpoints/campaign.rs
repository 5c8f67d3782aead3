//! One case from its first instruction to its last: which points are tried, and each trial.

use std::cell::RefCell;
use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use vellum::Log;

use super::check::Fault;
use super::full;
use super::point::{self, Calls, Extent, Point, Reached, Stretch};
use super::power;
use super::report::{self, Phase, SLOW, word};
use super::scenario::{Case, Operation};
use super::survivor::{Scene, Strike};
use super::victim;
use crate::payload::Payload;
use crate::random::Random;
use crate::trace::{self, Go, Pid, SharedPage, Stop};

/// A survivor that takes longer than this until it has read its own record was held up.
pub(crate) const HELD_UP: Duration = Duration::from_secs(2);
/// A stretch with more instructions than this between two system calls is sampled: it is the
/// filling of private memory, one iteration of a repeated instruction each.
const STEPS_MAX: u64 = 20_000;
/// How many instructions more than the one that was followed another victim may execute.
const SLACK: u64 = 200;
/// Points tried in such a stretch.
const LONG_STRETCH_POINTS: u64 = 200;
/// Points next to something that others can see, for each one anywhere.
const EDGES_PER_TURN: usize = 6;
/// A case ends after so many faults, unless told otherwise: the rest would say the same.
pub const FAULTS_MAX: u64 = 3;

/// One case being tried.
pub struct Campaign<'a> {
    pub(crate) case: &'a Case,
    template: PathBuf,
    pub(crate) dir: PathBuf,
    /// The seed that repeats this case alone.
    seed: u64,
    pub(crate) random: Random,
    /// Shared with victims.
    pub(crate) page: SharedPage,
    /// Shared with the process that started the campaign.
    pub(crate) report: &'a SharedPage,
    pub(crate) turn: u64,
    /// Faults after which it ends.
    faults_max: u64,
}

impl<'a> Campaign<'a> {
    /// Makes the case's log in `base`, which is an empty directory.
    pub fn new(
        case: &'a Case,
        base: &Path,
        seed: u64,
        report: &'a SharedPage,
    ) -> io::Result<Campaign<'a>> {
        let mut disk = base.to_path_buf();
        if case.operation.is_on_full_disk() {
            disk.push("disk");
            full::mount(&disk)?;
        }
        let campaign = Campaign {
            case,
            template: base.join("template"),
            dir: disk.join("log"),
            seed,
            random: Random::new(seed),
            page: SharedPage::new()?,
            report,
            turn: 0,
            faults_max: FAULTS_MAX,
        };
        campaign.warm_up(&base.join("warm")).map_err(io::Error::other)?;
        let make = || case.make_template(&campaign.template);
        if case.operation.has_template() {
            let child = trace::fork(|| victim::report(&campaign.page, make))?;
            if trace::wait(child)? != Stop::Exited(0) {
                return Err(io::Error::other(campaign.page.text()));
            }
        }
        Ok(campaign)
    }

    /// Continues until so many faults have been met.
    pub fn set_faults_max(&mut self, count: u64) {
        self.faults_max = count;
    }

    /// Takes in this process, once, the steps that a process takes only the first time (queries of
    /// the processor's features, for example): victims inherit the results, and make fewer calls.
    fn warm_up(&self, dir: &Path) -> vellum::Result<()> {
        let log = self.case.options().open(dir)?;
        log.append(&Payload::new('x', 0, 100).bytes(self.case.layout))?;
        if self.case.is_durable() {
            log.sync()?;
        }
        log.verify()?;
        Ok(())
    }

    /// Tries points as many as `extent` says.
    pub fn run(&mut self, extent: Extent) -> io::Result<()> {
        if let Extent::One(point) = extent {
            self.try_point(point)?;
            return Ok(());
        }
        let calls_max = self.case.operation.calls_max();
        let limit = calls_max.unwrap_or(usize::MAX);
        let calls = self.follow(|victim| point::list_calls(victim, limit))?;
        self.report.word(word::CALLS).store(calls.len() as u64, Ordering::SeqCst);
        if calls_max.is_none() {
            self.try_point(Point::End)?;
        }
        match extent {
            Extent::All => self.run_all(&calls),
            Extent::Sample(time) => self.run_sample(&calls, Instant::now() + time),
            Extent::One(_) => Ok(()),
        }
    }

    fn run_all(&mut self, calls: &Calls) -> io::Result<()> {
        for number in 0..=calls.len() as u64 {
            let stretch = self.learn(number)?;
            if !stretch.is_whole {
                self.run_long_stretch(number, &stretch)?;
                continue;
            }
            // Other victims may take a few instructions more.
            for steps in 0..=stretch.len + SLACK {
                if self.has_enough_faults() {
                    return Ok(());
                }
                if stretch.is_inside_repeat(steps) {
                    continue;
                }
                let point = Point::Step { calls: number, steps };
                let reached = self.try_in(point, Some(&stretch))?;
                if reached != Reached::There && steps >= stretch.len {
                    break;
                }
            }
        }
        for point in point::torn_points(calls, self.torn_len_min()) {
            self.try_point(point)?;
        }
        self.report.word(word::IS_COMPLETE).store(1, Ordering::SeqCst);
        Ok(())
    }

    fn run_long_stretch(&mut self, number: u64, stretch: &Stretch) -> io::Result<()> {
        self.report.word(word::LONG_STRETCHES).fetch_add(1, Ordering::SeqCst);
        for _ in 0..LONG_STRETCH_POINTS {
            let steps = self.random.below(STEPS_MAX);
            self.try_in(Point::Step { calls: number, steps }, Some(stretch))?;
        }
        Ok(())
    }

    /// Follows one victim through a stretch.
    fn learn(&mut self, number: u64) -> io::Result<Stretch> {
        let control = self.dir.join("control");
        let stretch = self.follow(|victim| point::learn(victim, number, STEPS_MAX, &control))?;
        // The system call is an instruction too.
        let count = stretch.instructions() + 1;
        self.report.word(word::INSTRUCTIONS).fetch_add(count, Ordering::SeqCst);
        Ok(stretch)
    }

    /// First the places next to system calls and behind each change of the control file, mixed with
    /// any others; each once.
    fn run_sample(&mut self, calls: &Calls, deadline: Instant) -> io::Result<()> {
        let count = calls.len() as u64 + 1;
        let mut unknown: Vec<u64> = (0..count).collect();
        self.random.shuffle(&mut unknown);
        let mut edges = point::torn_points(calls, self.torn_len_min());
        edges.extend((0..count).map(|calls| Point::Step { calls, steps: 0 }));
        self.random.shuffle(&mut edges);
        let mut stretches = vec![Stretch::default(); count as usize];
        let mut tried: HashSet<Point> = HashSet::new();
        let mut total = 0;
        while Instant::now() < deadline && !self.has_enough_faults() {
            if let Some(number) = unknown.pop() {
                let stretch = self.learn(number)?;
                let changes = stretch.changes.iter();
                edges.extend(changes.map(|steps| Point::Step { calls: number, steps: *steps }));
                self.random.shuffle(&mut edges);
                total += stretch.len + 1;
                stretches[number as usize] = stretch;
            }
            for _ in 0..EDGES_PER_TURN {
                let Some(edge) = edges.pop() else { break };
                if tried.insert(edge) {
                    self.try_in(edge, edge.stretch_in(&stretches))?;
                }
            }
            let point = point::pick(&stretches, self.random.below(total));
            if tried.insert(point) {
                self.try_in(point, point.stretch_in(&stretches))?;
            } else if tried.len() as u64 >= total && edges.is_empty() && unknown.is_empty() {
                self.report.word(word::IS_COMPLETE).store(1, Ordering::SeqCst);
                break;
            }
        }
        Ok(())
    }

    /// Headers are overwritten in place where a log is trimmed, truncated or recovered. They lie in
    /// one sector, and neither a death nor a power cut tears them.
    fn torn_len_min(&self) -> u64 {
        if self.case.is_durable() { point::SECTOR } else { 2 }
    }

    pub(crate) fn has_enough_faults(&self) -> bool {
        self.report.word(word::FAULTS).load(Ordering::SeqCst) >= self.faults_max
    }

    /// Has one victim go through the operation, or a part of it, with no survivor.
    fn follow<T>(&mut self, way: impl FnOnce(Pid) -> io::Result<T>) -> io::Result<T> {
        self.enter(Phase::Prepare);
        self.lay_out()?;
        let inherited = self.log_to_inherit()?;
        let victim = self.start_victim(inherited.as_ref())?;
        self.run_to_mark(victim)?;
        let answer = way(victim)?;
        trace::kill_and_reap(victim)?;
        victim::end_lingering(&self.page);
        Ok(answer)
    }

    fn try_point(&mut self, point: Point) -> io::Result<Reached> {
        self.try_in(point, None)
    }

    /// Kills a victim at `point` and has the survivor continue.
    fn try_in(&mut self, point: Point, stretch: Option<&Stretch>) -> io::Result<Reached> {
        self.enter(Phase::Prepare);
        self.report.set_text(&format!("--point {point}"));
        self.lay_out()?;
        let inherited = self.log_to_inherit()?;
        let victim = self.start_victim(inherited.as_ref())?;
        let turn = self.turn;
        self.turn += 1;
        let mut strike = Killing {
            campaign: self,
            victim,
            point,
            stretch,
            // Every other time the survivor meets a zombie.
            is_reaped: turn.is_multiple_of(2),
            reached: Reached::There,
        };
        let taken = RefCell::default();
        let scene = Scene { case: self.case, dir: &self.dir, page: &self.page, turn, taken };
        let played = scene.play(inherited, &mut strike);
        let reached = strike.reached;
        trace::watchdog(0);
        // A zombie, or after a fault a victim that was never killed.
        trace::kill_and_reap(victim)?;
        victim::end_lingering(&self.page);
        self.note(point, reached, played);
        Ok(reached)
    }

    fn note(&self, point: Point, reached: Reached, played: Result<u64, Fault>) {
        let add = |index: usize| self.report.word(index).fetch_add(1, Ordering::SeqCst);
        add(word::POINTS);
        if let Point::Torn { .. } = point {
            add(word::TORN);
        }
        let in_time = |elapsed: u64| {
            self.report.word(word::SLOWEST_NS).fetch_max(elapsed, Ordering::SeqCst);
            let is_in_time = elapsed < HELD_UP.as_nanos() as u64;
            let fault = || format!("the survivor was held up for {} ms", elapsed / 1_000_000);
            if is_in_time { Ok(elapsed) } else { Err(fault()) }
        };
        match played.and_then(in_time) {
            Ok(elapsed) => {
                if elapsed > SLOW.as_nanos() as u64 {
                    add(word::SLOW);
                    let ms = elapsed / 1_000_000;
                    println!("slow: {} at {point}: {ms} ms", self.case);
                }
            }
            Err(fault) => {
                println!("FAULT: {} at {point} ({reached:?}): {fault}", self.case);
                self.note_fault(&format!("--point {point}"));
            }
        }
    }

    /// Counts a fault, keeps its log, and says how to come to it again.
    pub(crate) fn note_fault(&self, again: &str) {
        let count = self.report.word(word::FAULTS).fetch_add(1, Ordering::SeqCst);
        let message = self.page.text();
        let kept = self.template.with_file_name(format!("fault-{count}"));
        let _ = power::keep(&self.dir, &kept);
        if !message.is_empty() {
            println!("    {message}");
        }
        println!("    the log is kept in {}", kept.display());
        println!("    again: vellum-killpoints --case {} {again} --seed {}", self.case, self.seed);
    }

    pub(crate) fn enter(&self, phase: Phase) {
        report::enter(self.report, phase);
    }

    /// A fresh copy of the template.
    pub(crate) fn lay_out(&self) -> io::Result<()> {
        self.page.clear();
        full::make_space(&self.dir)?;
        if self.dir.exists() {
            fs::remove_dir_all(&self.dir)?;
        }
        if self.case.operation.has_template() {
            power::copy(&self.template, &self.dir)?;
        }
        Ok(())
    }

    /// The log that the victim has from this process.
    pub(crate) fn log_to_inherit(&self) -> io::Result<Option<Log>> {
        let is_forked = self.case.operation == Operation::ForkedAppend;
        let log = is_forked.then(|| self.case.options().open(&self.dir));
        log.transpose().map_err(io::Error::from)
    }

    /// A victim that has prepared what comes before the survivor's part.
    pub(crate) fn start_victim(&self, inherited: Option<&Log>) -> io::Result<Pid> {
        let live = || victim::live(self.case, &self.dir, inherited, &self.page);
        let victim = trace::fork(live)?;
        self.expect_mark(victim)?;
        trace::set_options(victim)?;
        Ok(victim)
    }

    pub(crate) fn run_to_mark(&self, victim: Pid) -> io::Result<()> {
        trace::go(victim, Go::ToMark)?;
        self.expect_mark(victim)
    }

    fn expect_mark(&self, victim: Pid) -> io::Result<()> {
        let mut stop = trace::wait(victim)?;
        while stop == Stop::Harmless {
            trace::go(victim, Go::ToMark)?;
            stop = trace::wait(victim)?;
        }
        match stop {
            Stop::Mark => Ok(()),
            stop => Err(io::Error::other(format!("{stop:?} {}", self.page.text()))),
        }
    }
}

/// The way of one victim to its death.
struct Killing<'a> {
    campaign: &'a Campaign<'a>,
    victim: Pid,
    point: Point,
    stretch: Option<&'a Stretch>,
    is_reaped: bool,
    reached: Reached,
}

impl Strike for Killing<'_> {
    fn reach(&mut self) -> Result<(), Fault> {
        let mut go = || -> io::Result<()> {
            self.campaign.run_to_mark(self.victim)?;
            self.campaign.enter(Phase::Step);
            self.reached = point::go_to(self.victim, self.point, self.stretch)?;
            self.campaign.enter(Phase::Survive);
            Ok(())
        };
        go().map_err(|error| format!("the victim went astray: {error}"))
    }

    fn finish(&mut self) -> Result<(), Fault> {
        // Where a step came to a system call, that was not carried out.
        if self.reached == Reached::There {
            let answer = self.campaign.run_to_mark(self.victim);
            answer.map_err(|error| format!("the victim does not come to its end: {error}"))?;
        }
        self.kill()
    }

    fn kill(&mut self) -> Result<(), Fault> {
        let kill = || -> io::Result<()> {
            trace::kill(self.victim)?;
            trace::wait_dead(self.victim)?;
            if self.is_reaped {
                trace::wait(self.victim)?;
            }
            self.campaign.enter(Phase::Survive);
            Ok(())
        };
        kill().map_err(|error| format!("the victim does not die: {error}"))
    }
}
