//! Visiting worlds.

use std::collections::hash_map::DefaultHasher;
use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasher, BuildHasherDefault};
use std::rc::Rc;

use super::action::Taken;
use super::actor::Process;
use super::steps::Step;
use super::world::World;
use crate::decide::rules::{Broken, breaking};

/// One in so many worlds is also checked whether each actor can continue alone.
const SOLO_SHARE: u64 = 32;
/// Steps of a random walk.
const WALK: usize = 400;

/// Which step of each world on the way was taken. The same steps can be found again.
struct Trace {
    index: usize,
    before: Option<Rc<Trace>>,
}

/// How a search ended.
#[derive(Debug)]
pub(super) struct Found {
    /// The failed check, with the way to it.
    pub(super) fault: Option<String>,
    pub(super) states: usize,
    pub(super) is_exhausted: bool,
    pub(super) taken: Taken,
}

/// The stops that each actor may meet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Allowed {
    pub(super) fenced: bool,
    pub(super) diverged: bool,
}

pub(super) fn states_max() -> usize {
    let text = std::env::var("VELLUM_SHIP_MODEL").ok();
    text.and_then(|text| text.parse().ok()).unwrap_or(250_000)
}

/// Visits every world that can be reached, the near ones first.
pub(super) fn explore(start: &World, allowed: Allowed, broken: Option<Broken>) -> Found {
    breaking(broken, || search(start, allowed, states_max()))
}

fn search(start: &World, allowed: Allowed, most: usize) -> Found {
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    let mut seen = HashSet::from([hasher.hash_one(start)]);
    let mut queue: VecDeque<(World, Option<Rc<Trace>>)> = VecDeque::from([(start.clone(), None)]);
    let mut found = Found { fault: None, states: 0, is_exhausted: false, taken: Taken::default() };
    while let Some((world, trace)) = queue.pop_front() {
        for (index, Step { action, mut next, .. }) in world.steps(false).into_iter().enumerate() {
            found.taken.add(action);
            next.outcomes(&world, &mut found.taken);
            let hash = hasher.hash_one(&next);
            if !seen.insert(hash) {
                continue;
            }
            found.states = seen.len();
            let trace = Some(Rc::new(Trace { index, before: trace.clone() }));
            if let Some(fault) = fault(&mut next, &world, allowed, hash % SOLO_SHARE == 0) {
                found.fault = Some(told(&fault, start, trace));
                return found;
            }
            if seen.len() >= most {
                return found;
            }
            queue.push_back((next, trace));
        }
    }
    Found { is_exhausted: true, ..found }
}

/// Walks at random from the start, again and again.
pub(super) fn wander(start: &World, allowed: Allowed, broken: Option<Broken>, walks: u64) -> Found {
    let mut found = Found { fault: None, states: 0, is_exhausted: false, taken: Taken::default() };
    breaking(broken, || {
        for seed in 0..walks {
            found.fault = walk(start, allowed, seed, &mut found.taken, &mut found.states);
            if found.fault.is_some() {
                break;
            }
        }
    });
    found
}

fn walk(
    start: &World,
    allowed: Allowed,
    seed: u64,
    taken: &mut Taken,
    states: &mut usize,
) -> Option<String> {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let (mut world, mut trace) = (start.clone(), None);
    for _ in 0..WALK {
        let mut steps = world.steps(false);
        if steps.is_empty() {
            break;
        }
        let index = random.below(steps.len());
        let Step { action, mut next, .. } = steps.swap_remove(index);
        taken.add(action);
        next.outcomes(&world, taken);
        *states += 1;
        trace = Some(Rc::new(Trace { index, before: trace }));
        let is_asked = random.below(SOLO_SHARE as usize) == 0;
        if let Some(fault) = fault(&mut next, &world, allowed, is_asked) {
            return Some(told(&fault, start, trace));
        }
        world = next;
    }
    None
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

/// The fault of a world, which came from another one.
pub(super) fn fault(
    world: &mut World,
    before: &World,
    allowed: Allowed,
    is_solo: bool,
) -> Option<String> {
    world.check(before);
    if is_solo && world.fault.is_none() {
        world.check_going_on();
    }
    let is = |how: &Process| world.actors.iter().any(|actor| actor.process == *how);
    match () {
        () if world.fault.is_some() => world.fault.clone(),
        () if is(&Process::Fenced) && !allowed.fenced => Some("fenced by nobody".into()),
        () if is(&Process::Diverged) && !allowed.diverged => Some("diverged from itself".into()),
        () => None,
    }
}

/// The fault and the steps to it, which are taken again.
fn told(fault: &str, start: &World, trace: Option<Rc<Trace>>) -> String {
    let (mut way, mut at) = (Vec::new(), trace);
    while let Some(trace) = at {
        way.push(trace.index);
        at = trace.before.clone();
    }
    let (mut world, mut text) = (start.clone(), fault.to_string());
    for index in way.into_iter().rev() {
        let step = world.steps(true).swap_remove(index);
        text = format!("{text}\n  {}", step.name);
        world = step.next;
    }
    text
}
