//! The next process, and deaths: all possibilities, or many of them at random.
//!
//! **All**: depth first. Where an execution comes to a moment with a digest that was seen before,
//! its rest is not varied again, so the number of executions is that of the steps between
//! different states and not that of the paths.
//!
//! **At random**: each step by the same chance, deaths now and then. The seed is fixed, so that a
//! failure comes back; `VELLUM_MODEL_SEED` sets another.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use shuttle::scheduler::{Schedule, Scheduler, Task, TaskId};
use shuttle::{Config, FailurePersistence, MaxSteps, Runner};

use crate::shared::model_atomics;

/// Which deaths are possible.
#[derive(Clone, Copy)]
pub(crate) struct Deaths {
    /// At most so many, among the processes from 1 to `mortal_count`.
    pub(crate) count: usize,
    pub(crate) mortal_count: usize,
}

/// How many executions to look at.
#[derive(Clone, Copy)]
pub(crate) enum Extent {
    All,
    Random(u64),
}

/// The number of explored states and steps.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    schedules: AtomicU64,
    states: AtomicU64,
    deaths: AtomicU64,
    timeouts_without_death: AtomicU64,
}

impl Counts {
    /// Times that all processes were alive and asleep, and only a timeout could help.
    pub(crate) fn timeouts_without_death(&self) -> u64 {
        self.timeouts_without_death.load(Ordering::Relaxed)
    }
}

/// Runs `model` under the schedules of `extent`; it fails by panicking. Prints what was tried.
pub(crate) fn explore(
    name: &str,
    deaths: Deaths,
    extent: Extent,
    model: impl Fn() + Send + Sync + 'static,
) -> Arc<Counts> {
    let counts = Arc::new(Counts::default());
    let mut config = Config::new();
    config.failure_persistence = FailurePersistence::None;
    config.max_steps = MaxSteps::FailAfter(20_000);
    let begun = Instant::now();
    Runner::new(Explorer::new(deaths, extent, Arc::clone(&counts)), config).run(model);
    report(name, extent, &counts, begun.elapsed());
    counts
}

fn report(name: &str, extent: Extent, counts: &Counts, took: Duration) {
    let [schedules, states, deaths] =
        [&counts.schedules, &counts.states, &counts.deaths].map(|n| n.load(Ordering::Relaxed));
    let what = match extent {
        Extent::All => format!("all {states} states, {schedules} schedules"),
        Extent::Random(_) => format!("{schedules} random schedules"),
    };
    println!("model: {name}: {what}, {deaths} deaths, {:.1} s", took.as_secs_f64());
}

/// The next event.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Choice {
    task: TaskId,
    dies: bool,
    /// To a process's question.
    answer: usize,
}

impl Choice {
    fn step(task: TaskId) -> Choice {
        Choice { task, dies: false, answer: 0 }
    }

    fn death(task: TaskId) -> Choice {
        Choice { task, dies: true, answer: 0 }
    }
}

/// A moment on the current path, with the choices that are still to be tried there.
struct Level {
    choices: Vec<Choice>,
    next: usize,
}

struct Explorer {
    deaths: Deaths,
    extent: Extent,
    counts: Arc<Counts>,
    levels: Vec<Level>,
    depth: usize,
    seen: HashSet<u64>,
    /// The rest of this execution is known.
    is_known: bool,
    died: usize,
    random: u64,
}

impl Explorer {
    fn new(deaths: Deaths, extent: Extent, counts: Arc<Counts>) -> Explorer {
        let seed = std::env::var("VELLUM_MODEL_SEED").ok();
        Explorer {
            deaths,
            extent,
            counts,
            levels: Vec::new(),
            depth: 0,
            seen: HashSet::new(),
            is_known: false,
            died: 0,
            random: seed.map_or(1, |seed| seed.parse().expect("a number")),
        }
    }

    /// Steps that can come next and are worth trying.
    fn choices(&self, runnable: &[&Task]) -> Vec<Choice> {
        let awake = |task: &&&Task| !model_atomics::is_asleep(task.id().into());
        let mut choices: Vec<_> =
            runnable.iter().filter(awake).map(|task| Choice::step(task.id())).collect();
        if self.died < self.deaths.count {
            let may_die =
                |task: &&&Task| (1..=self.deaths.mortal_count).contains(&task.id().into());
            let deaths = runnable.iter().filter(may_die);
            choices.extend(deaths.map(|task| Choice::death(task.id())));
        }
        choices
    }

    /// The next step on a path that is tried for the first time.
    fn choose_new(&mut self, choices: Vec<Choice>) -> Choice {
        let first = choices[0];
        if self.is_known || !self.seen.insert(model_atomics::digest()) {
            self.is_known = true;
            return first;
        }
        self.counts.states.fetch_add(1, Ordering::Relaxed);
        self.levels.push(Level { choices, next: 0 });
        self.depth += 1;
        first
    }

    fn choose_random(&mut self, choices: &[Choice]) -> Choice {
        let (deaths, steps): (Vec<Choice>, Vec<Choice>) =
            choices.iter().partition(|choice| choice.dies);
        let random = self.next_random();
        // Rare in every other schedule, so that not all die at the beginning of a long one.
        let rarity = 24 << (self.counts.schedules.load(Ordering::Relaxed) % 4);
        let is_death = !deaths.is_empty() && (steps.is_empty() || random.is_multiple_of(rarity));
        let from = if is_death { deaths } else { steps };
        from[(random >> 32) as usize % from.len()]
    }

    fn next_random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(1);
        model_atomics::mix(self.random, 7)
    }

    /// Answers a process's question, of which there are `count` answers.
    fn answer(&mut self, task: TaskId, count: usize) {
        let answers = |answer| Choice { answer, ..Choice::step(task) };
        let choice = self.choose(|_| (0..count).map(answers).collect());
        model_atomics::answer(choice.answer);
    }

    /// The next step, on a path that is tried for the first time or one that is tried again.
    fn choose(&mut self, choices: impl FnOnce(&Explorer) -> Vec<Choice>) -> Choice {
        if let Some(level) = self.levels.get(self.depth) {
            self.depth += 1;
            return level.choices[level.next];
        }
        let choices = choices(self);
        match self.extent {
            Extent::All => self.choose_new(choices),
            Extent::Random(_) => self.choose_random(&choices),
        }
    }

    /// Lets the timeouts of all sleepers pass, because no other process can continue.
    fn pass_timeouts(&self, runnable: &[&Task]) {
        if self.died == 0 {
            self.counts.timeouts_without_death.fetch_add(1, Ordering::Relaxed);
        }
        for task in runnable {
            model_atomics::time_out(task.id().into());
        }
    }
}

impl Scheduler for Explorer {
    fn new_execution(&mut self) -> Option<Schedule> {
        let done = self.counts.schedules.load(Ordering::Relaxed);
        match self.extent {
            Extent::Random(count) if done == count => return None,
            Extent::All if done > 0 => {
                while self.levels.last().is_some_and(|l| l.next + 1 == l.choices.len()) {
                    self.levels.pop();
                }
                self.levels.last_mut()?.next += 1;
            }
            _ => {}
        }
        self.counts.schedules.fetch_add(1, Ordering::Relaxed);
        (self.depth, self.is_known, self.died) = (0, false, 0);
        Some(Schedule::new(0))
    }

    fn next_task(
        &mut self,
        runnable: &[&Task],
        current: Option<TaskId>,
        _is_yielding: bool,
    ) -> Option<TaskId> {
        if let (count @ 1.., Some(task)) = (model_atomics::question(), current) {
            self.answer(task, count);
            return Some(task);
        }
        // The first process only starts the others, waits for them and checks the result.
        let is_private = |task: &&&Task| {
            let index = task.id().into();
            index == 0 || model_atomics::is_private(index)
        };
        if let Some(task) = runnable.iter().find(is_private) {
            return Some(task.id());
        }
        if runnable.iter().all(|task| model_atomics::is_asleep(task.id().into())) {
            self.pass_timeouts(runnable);
        }
        let choice = self.choose(|explorer| explorer.choices(runnable));
        if choice.dies {
            self.died += 1;
            self.counts.deaths.fetch_add(1, Ordering::Relaxed);
            model_atomics::kill(choice.task.into());
        }
        Some(choice.task)
    }

    fn next_u64(&mut self) -> u64 {
        self.next_random()
    }
}
