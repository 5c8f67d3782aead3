//! The workers of a campaign: started, heard through one pipe, killed and stopped.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;

use super::campaign::Campaign;
use super::ledger::Ledger;
use super::report::{self, Report};
use super::surroundings::Surroundings;
use super::sys::{self, End};
use super::table::{self, Area, Kind};
use super::worker::{WorkerArgs, letter};
use crate::random::Random;
use crate::trace;

/// Beyond this a silence is taken for a hang.
const PATIENCE: Duration = Duration::from_secs(20);
/// Operations of each side.
const OPERATIONS: u32 = 120;
const WORKERS: usize = 3;
/// So many are killed, and others come for them.
const KILLS_MAX: u64 = 3;

/// Workers, and their lines.
pub(super) struct Crew<'a> {
    campaign: &'a Campaign,
    base: &'a Path,
    random: Random,
    reader: PipeReader,
    /// Until no more are started.
    writer: Option<PipeWriter>,
    buffer: Vec<u8>,
    /// By process.
    workers: HashMap<i32, Worker>,
    pub(super) next_worker: usize,
    /// Sides that have begun, or will, and are not done.
    busy: BTreeSet<char>,
    opened: BTreeSet<char>,
    heard: u64,
    heard_at: Instant,
    /// How many reports were heard when one was stopped last.
    stopped_at: u64,
    pub(super) ledger: Ledger,
    /// The promises when an image was made.
    pub(super) image: Option<Ledger>,
    pub(super) kills: u64,
    pub(super) faults: Vec<String>,
}

struct Worker {
    number: usize,
    /// It continues when this is closed.
    stdin: Option<ChildStdin>,
    is_killed: bool,
}

impl<'a> Crew<'a> {
    pub(super) fn new(campaign: &'a Campaign, base: &'a Path) -> anyhow::Result<Crew<'a>> {
        let (reader, writer) = io::pipe()?;
        Ok(Crew {
            campaign,
            base,
            random: Random::new(campaign.seed),
            reader,
            writer: Some(writer),
            buffer: Vec::new(),
            workers: HashMap::new(),
            next_worker: 0,
            busy: BTreeSet::new(),
            opened: BTreeSet::new(),
            heard: 0,
            heard_at: Instant::now(),
            stopped_at: 0,
            ledger: Ledger::of_new_log(),
            image: None,
            kills: 0,
            faults: Vec::new(),
        })
    }

    /// Starts a worker; one that works alone truncates.
    pub(super) fn start(
        &mut self,
        number: usize,
        place: &Surroundings,
        alone: bool,
    ) -> anyhow::Result<()> {
        let args = WorkerArgs {
            base: self.base.to_path_buf(),
            log: place.log(),
            worker: number,
            worlds: table::title(&self.campaign.worlds),
            shape: self.campaign.shape,
            seed: self.campaign.seed.wrapping_add(number as u64),
            operations: OPERATIONS,
            alone,
            after: None,
        };
        let writer = self.writer.as_ref().context("no more can be started")?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args(args.words()).stdin(Stdio::piped()).stdout(writer.try_clone()?);
        // Its faults are printed; its forked children get its signals, too.
        let mut child = command.process_group(0).spawn()?;
        let stdin = child.stdin.take();
        self.workers.insert(child.id() as i32, Worker { number, stdin, is_killed: false });
        self.busy.insert(letter(number, 0));
        self.next_worker = self.next_worker.max(number + 1);
        Ok(())
    }

    /// Several workers, some of which are killed, while all around them changes.
    pub(super) fn work(&mut self, place: &mut Surroundings) -> anyhow::Result<()> {
        self.start(0, place, false)?;
        // A process that comes later finds a log.
        while self.opened.is_empty() && !self.busy.is_empty() {
            self.step()?;
        }
        for number in 1..WORKERS {
            self.start(number, place, false)?;
        }
        let mut kills: Vec<u64> = (0..self.random.below(KILLS_MAX + 1))
            .map(|_| self.heard + self.random.below(450))
            .collect();
        let mut turn = Some(self.heard + self.random.below(350));
        while !self.busy.is_empty() {
            self.step()?;
            place.disturb();
            self.let_go_on();
            if turn.is_some_and(|at| self.heard >= at) {
                turn = None;
                self.turn(place)?;
            }
            if let Some(due) = kills.iter().position(|at| self.heard >= *at) {
                kills.swap_remove(due);
                self.kill_one(place)?;
            }
            if self.campaign.has(Kind::Stopped) {
                self.stop_one();
            }
        }
        self.let_go_on();
        if turn.is_some() {
            self.turn(place)?;
        }
        Ok(())
    }

    /// The one event around all processes.
    fn turn(&mut self, place: &mut Surroundings) -> anyhow::Result<()> {
        if self.campaign.has(Kind::Renamed) {
            self.wait_until_open()?;
        }
        let groups: Vec<i32> = self.workers.keys().copied().collect();
        if place.wants_stillness() {
            groups.iter().for_each(|group| sys::signal(-group, libc::SIGSTOP));
            let is_moving = |group: &&i32| !matches!(trace::state(**group), Ok('T' | 'Z') | Err(_));
            while groups.iter().find(is_moving).is_some() {
                std::thread::yield_now();
            }
            // Their lines until now.
            while sys::can_read(self.reader.as_fd(), 0) && self.step()? {}
        }
        self.image = Some(self.ledger.clone());
        let turned = place.turn();
        if place.wants_stillness() {
            groups.iter().for_each(|group| sys::signal(-group, libc::SIGCONT));
        }
        turned
    }

    /// Waits until no process looks for the log under its name any more.
    fn wait_until_open(&mut self) -> anyhow::Result<()> {
        while self.busy.iter().any(|side| !self.opened.contains(side)) {
            self.step()?;
        }
        Ok(())
    }

    fn kill_one(&mut self, place: &Surroundings) -> anyhow::Result<()> {
        let Some((process, number)) = self.choose() else { return Ok(()) };
        self.kill(process);
        self.busy.remove(&letter(number, 0));
        self.kills += 1;
        let next = self.next_worker;
        self.start(next, place, false)
    }

    /// A worker that has not been killed, and is not done.
    fn choose(&mut self) -> Option<(i32, usize)> {
        let lives =
            |worker: &Worker| !worker.is_killed && self.busy.contains(&letter(worker.number, 0));
        let living: BTreeMap<usize, i32> = self
            .workers
            .iter()
            .filter(|(_, worker)| lives(worker))
            .map(|(process, worker)| (worker.number, *process))
            .collect();
        let count = living.len() as u64;
        let chosen = living.into_iter().nth(self.random.below(count.max(1)) as usize)?;
        Some((chosen.1, chosen.0))
    }

    /// Kills a worker; its children live on, except in a PID namespace.
    fn kill(&mut self, process: i32) {
        let forks = self.campaign.worlds.iter().any(|world| world.kind.area() == Area::Life);
        sys::signal(if forks { process } else { -process }, libc::SIGKILL);
        if let Some(worker) = self.workers.get_mut(&process) {
            worker.is_killed = true;
        }
    }

    /// Stops one until the next step. Once for a report: the last that is not done would hardly run
    /// otherwise.
    fn stop_one(&mut self) {
        if !self.heard.is_multiple_of(3) || self.stopped_at == self.heard {
            return;
        }
        if let Some((process, _)) = self.choose() {
            self.stopped_at = self.heard;
            sys::signal(-process, libc::SIGSTOP);
        }
    }

    /// Continues all stopped processes, again and again: where one forks while it is stopped and
    /// continued, Linux gives its child the first signal and not the second.
    fn let_go_on(&self) {
        if self.campaign.has(Kind::Stopped) {
            self.workers.keys().for_each(|group| sys::signal(-group, libc::SIGCONT));
        }
    }

    /// Waits until all are done.
    pub(super) fn attend(&mut self) -> anyhow::Result<()> {
        while !self.busy.is_empty() {
            self.step()?;
        }
        Ok(())
    }

    /// Ends all processes, and reads their last lines.
    pub(super) fn end(&mut self) -> anyhow::Result<()> {
        self.workers.values_mut().for_each(|worker| worker.stdin = None);
        self.writer = None;
        while self.step()? {
            self.let_go_on();
        }
        // Those whose pipe is closed are as good as gone.
        while trace::wait_any()?.is_some_and(|(process, stop)| {
            let end = match stop {
                trace::Stop::Killed(signal) => End::Killed(signal),
                trace::Stop::Exited(code) => End::Exited(code),
                _ => return true,
            };
            self.take_end(process, end);
            true
        }) {}
        Ok(())
    }

    /// Reads the lines so far; false once no process can print any more.
    fn step(&mut self) -> anyhow::Result<bool> {
        let mut is_open = true;
        if sys::can_read(self.reader.as_fd(), 10) {
            let mut bytes = [0; 4096];
            let count = self.reader.read(&mut bytes)?;
            is_open = count > 0;
            self.buffer.extend_from_slice(&bytes[..count]);
            self.hear();
        } else {
            self.forget_the_gone();
        }
        while let Some((process, end)) = sys::reap() {
            self.take_end(process, end);
        }
        if self.heard_at.elapsed() > PATIENCE {
            self.give_up();
        }
        Ok(is_open)
    }

    /// A child may die when its worker is dead: then no process reports that.
    fn forget_the_gone(&mut self) {
        for (group, worker) in &self.workers {
            let sides = [letter(worker.number, 0), letter(worker.number, 1)];
            if sides.iter().any(|side| self.busy.contains(side)) && sys::is_gone(*group) {
                self.busy.retain(|side| !sides.contains(side));
            }
        }
    }

    fn hear(&mut self) {
        while let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.buffer.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            let Some((side, report)) = report::parse(line.trim_end()) else {
                self.faults.push(format!("a worker said {line:?}"));
                continue;
            };
            self.heard += 1;
            self.heard_at = Instant::now();
            match report {
                Report::Begun if !self.is_killed(side) => drop(self.busy.insert(side)),
                Report::Opened => drop(self.opened.insert(side)),
                Report::Done => drop(self.busy.remove(&side)),
                _ => {}
            }
            self.ledger.take(side, report);
        }
    }

    fn is_killed(&self, side: char) -> bool {
        self.workers.values().any(|worker| worker.is_killed && letter(worker.number, 0) == side)
    }

    fn take_end(&mut self, process: i32, end: End) {
        let worker = self.workers.get(&process);
        let is_killed = worker.is_none_or(|worker| worker.is_killed);
        // A world may take the memory away that a worker's own work needs.
        let starves = self.campaign.has(Kind::Memory) && end == End::Killed(libc::SIGABRT);
        let is_fine = end == End::Exited(0) || is_killed && end == End::Killed(libc::SIGKILL);
        let name = worker.map_or('?', |worker| letter(worker.number, 0));
        if !is_fine && !starves {
            self.faults.push(format!("the process of {name} ended by {end:?}"));
        }
        self.busy.remove(&name);
    }

    /// No process prints any more, and some are not done.
    fn give_up(&mut self) {
        let busy: String = self.busy.iter().collect();
        let words = if busy.is_empty() { "nobody ends".into() } else { format!("{busy} hang") };
        self.faults.push(format!("for {} s nothing was heard: {words}", PATIENCE.as_secs()));
        let groups: Vec<i32> = self.workers.keys().copied().collect();
        for group in groups {
            sys::signal(-group, libc::SIGKILL);
            self.workers.entry(group).and_modify(|worker| worker.is_killed = true);
        }
        self.busy.clear();
        self.heard_at = Instant::now();
    }
}
