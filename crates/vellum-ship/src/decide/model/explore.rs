//! Visiting worlds.

use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::rc::Rc;

use super::world::{Process, World};
use crate::decide::rules::{Broken, breaking};

struct Trace {
    step: String,
    before: Option<Rc<Trace>>,
}

/// How a search ended.
#[derive(Debug)]
pub(super) struct Found {
    /// What went wrong, with the way to it.
    pub(super) fault: Option<String>,
    pub(super) states: usize,
    pub(super) is_exhausted: bool,
}

/// Who may be stopped by what.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Allowed {
    pub(super) fenced: bool,
    pub(super) diverged: bool,
}

pub(super) fn states_max() -> usize {
    let text = std::env::var("VELLUM_SHIP_MODEL").ok();
    text.and_then(|text| text.parse().ok()).unwrap_or(100_000)
}

/// Visits every world that can be reached, the near ones first.
pub(super) fn explore(start: &World, allowed: Allowed, broken: Option<Broken>) -> Found {
    breaking(broken, || search(start, allowed, states_max()))
}

fn search(start: &World, allowed: Allowed, most: usize) -> Found {
    let hasher = RandomState::new();
    let mut seen = HashSet::from([hasher.hash_one(start)]);
    let mut queue: VecDeque<(World, Option<Rc<Trace>>)> = VecDeque::from([(start.clone(), None)]);
    while let Some((world, trace)) = queue.pop_front() {
        for (step, next) in world.steps() {
            if let Some(fault) = fault(&next, allowed) {
                let told = told(&fault, &step, trace.as_ref());
                return Found { fault: Some(told), states: seen.len(), is_exhausted: false };
            }
            if !seen.insert(hasher.hash_one(&next)) {
                continue;
            }
            if seen.len() >= most {
                return Found { fault: None, states: seen.len(), is_exhausted: false };
            }
            let trace = Trace { step, before: trace.clone() };
            queue.push_back((next, Some(Rc::new(trace))));
        }
    }
    Found { fault: None, states: seen.len(), is_exhausted: true }
}

/// Walks at random from the start, again and again.
pub(super) fn wander(start: &World, allowed: Allowed, broken: Option<Broken>, walks: u64) -> Found {
    breaking(broken, || {
        let mut states = 0;
        for seed in 0..walks {
            let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
            let (mut world, mut trace) = (start.clone(), None);
            for _ in 0..400 {
                let mut steps = world.steps();
                if steps.is_empty() {
                    break;
                }
                let (step, next) = steps.swap_remove(random.below(steps.len()));
                states += 1;
                if let Some(fault) = fault(&next, allowed) {
                    let told = told(&fault, &step, trace.as_ref());
                    return Found { fault: Some(told), states, is_exhausted: false };
                }
                trace = Some(Rc::new(Trace { step, before: trace }));
                world = next;
            }
        }
        Found { fault: None, states, is_exhausted: false }
    })
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

fn fault(world: &World, allowed: Allowed) -> Option<String> {
    if world.fault.is_some() {
        return world.fault.clone();
    }
    let is = |how: &Process| world.actors.iter().any(|actor| actor.process == *how);
    let is_over = |process: &Process| matches!(process, Process::Fenced | Process::Diverged);
    let is_locked_out = world.actors.iter().all(|actor| is_over(&actor.process));
    match () {
        () if is(&Process::Fenced) && !allowed.fenced => Some("fenced by nobody".into()),
        () if is(&Process::Diverged) && !allowed.diverged => Some("diverged from itself".into()),
        () if is_locked_out => Some("nobody can ship".into()),
        () => None,
    }
}

fn told(fault: &str, step: &str, trace: Option<&Rc<Trace>>) -> String {
    let mut steps = vec![step.to_string()];
    let mut at = trace;
    while let Some(trace) = at {
        steps.push(trace.step.clone());
        at = trace.before.as_ref();
    }
    steps.reverse();
    format!("{fault}\n  {}", steps.join("\n  "))
}
