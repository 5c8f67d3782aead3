//! Properties that must hold in every world.
//!
//! | promise | where |
//! |---|---|
//! | what is acknowledged is restored once, in order, with its content | [`World::check_plan`] |
//! | a reader returns no hole, and what some log has held | [`World::check_plan`] |
//! | only durable bytes are sent, only they are acknowledged | [`World::check_sent`], [`World::note_acked`] |
//! | nothing is acknowledged behind the end of a generation | [`World::note_acked`] |
//! | who is stopped is stopped for a reason | [`World::check_stop`] |
//! | who begins a generation has what comes before it | [`World::check_won`] |
//! | a log lets go only of what is stored | [`World::check_trimmed`] |
//! | a new claimant can always go on; so can everybody who is not stopped | [`World::check_going_on`] |

use std::rc::Rc;

use super::action::Action;
use super::actor::Process;
use super::store::{LOST, ORIGIN, Object, Store, cells_of, content, letters};
use super::world::{Acked, Budget, World};
use crate::decide::reader::{Plan, genesis};
use crate::decide::{Answer, Ask, Claim, Claimed, Intent, Owner, Point, Saved, Stop};
use crate::object::{Kind, Link};

/// More than an actor alone needs.
const SOLO_STEPS: usize = 300;

impl World {
    /// Everything that is visible from outside. Parts that are as in the world before were checked
    /// there.
    pub(super) fn check(&mut self, before: &World) {
        let is_same_store = self.store.is_untouched(&before.store);
        let is_same_ack = Rc::ptr_eq(&self.acked, &before.acked);
        if is_same_store && is_same_ack && self.retained == before.retained {
            return;
        }
        match self.plan() {
            Some(plan) => self.check_plan(&plan, &self.acked.clone()),
            None => self.fail("the log cannot be read".to_string()),
        }
        if !is_same_store && self.fault.is_none() && !goes_on(self.store.clone()) {
            self.fail("a new claimant cannot go on".to_string());
        }
    }

    /// Everything that was acknowledged, is not cut off, and is retained, is there.
    pub(super) fn check_plan(&mut self, plan: &Plan, acked: &Acked) {
        self.check_pieces(plan);
        let cells = cells_of(plan);
        for (&(generation, cell), letter) in acked.iter() {
            let later = plan.seals.iter().filter(|seal| seal.generation >= generation);
            let fork = later.map(|seal| seal.fork).min().unwrap_or(u64::MAX);
            let is_wanted = cell < fork && cell >= self.retained;
            if generation > plan.generation {
                return self.fail(format!("generation {generation} cannot be read"));
            }
            if is_wanted && cells.get(&cell) != Some(letter) {
                let found = cells.get(&cell).map(|found| *found as char);
                let want = *letter as char;
                return self.fail(format!("{cell} should be {want}, and is {found:?}"));
            }
        }
    }

    /// Each position is there once, and all of them were in one log.
    fn check_pieces(&mut self, plan: &Plan) {
        let mut at = plan.begin;
        for piece in &plan.pieces {
            if piece.header.start != at || piece.until <= at {
                return self.fail(format!("a piece begins at {}, not {at}", piece.header.start));
            }
            at = piece.until;
        }
        if at != plan.end.lsn {
            return self.fail(format!("the pieces end at {at}, the log at {}", plan.end.lsn));
        }
        let Some(last) = plan.pieces.last() else { return };
        let Some(object) = last.header.key().and_then(|key| self.store.get(&key)) else { return };
        let log = object.log.clone();
        for (cell, letter) in cells_of(plan) {
            let had = log.get(cell as usize).copied().unwrap_or(LOST);
            if had != LOST && letter != LOST && had != letter {
                return self.fail(format!("{cell} is of another log than what comes behind it"));
            }
        }
    }

    pub(super) fn check_sent(&mut self, who: usize, object: &Object) {
        let header = object.header;
        if header.kind == Kind::Chunk && header.end > self.actors[who].durable {
            self.fail(format!("{} was sent, and is not durable", header.end));
        }
    }

    pub(super) fn note_acked(&mut self, who: usize, before: Option<Point>) {
        let (Some(mut at), Some(now)) = (before, self.shipped(who)) else { return };
        let Process::Owning(owner) = &self.actors[who].process else { return };
        let generation = owner.generation();
        if at.lsn < now.lsn {
            self.check_acked(who, generation, now);
        }
        while at.lsn < now.lsn {
            let stored = self.store.get(&at.key(generation)).map(|stored| stored.header);
            let link = stored.filter(|header| header.before == at.chain);
            let start = at.lsn;
            let cells = match link {
                Some(header) => letters(&header),
                None => vec![self.actors[who].local(start)],
            };
            at = match link {
                Some(header) => Point { lsn: header.end, chain: header.after },
                None => Point { lsn: start + 1, chain: at.chain },
            };
            for (cell, letter) in (start..).zip(cells) {
                self.acknowledge(generation, cell, letter);
                let own = self.actors[who].local(cell);
                if own != letter && own != LOST {
                    self.fail(format!("{cell} was acknowledged, and another one's is there"));
                }
            }
        }
    }

    /// Acknowledged cells are durable, and not behind the end of its generation.
    fn check_acked(&mut self, who: usize, generation: u32, end: Point) {
        if end.lsn > self.actors[who].durable {
            self.fail(format!("{} was acknowledged, and is not durable", end.lsn));
        }
        let seals = self.plan().map(|plan| plan.seals).unwrap_or_default();
        let seal = seals.iter().find(|seal| seal.generation == generation);
        if seal.is_some_and(|seal| end.lsn > seal.start) {
            self.fail(format!("{} was acknowledged behind the seal of {generation}", end.lsn));
        }
    }

    fn acknowledge(&mut self, generation: u32, cell: u64, letter: u8) {
        let before = Rc::make_mut(&mut self.acked).insert((generation, cell), letter);
        if before.is_some_and(|before| before != letter) {
            self.fail(format!("{cell} was acknowledged with two contents"));
        }
    }

    /// A later generation, or something else on the chain than in the local log.
    pub(super) fn check_stop(&mut self, who: usize, stop: Stop) {
        let Some(plan) = self.plan() else { return };
        let actor = &self.actors[who];
        let own = actor.saved.as_ref().map(|saved| saved.generation);
        let is_later = own.map_or(plan.generation > 0, |own| plan.generation > own);
        let is_other = || cells_of(&plan).iter().any(|(at, letter)| actor.local(*at) != *letter);
        let is_right = match stop {
            Stop::Fenced { .. } => is_later,
            Stop::Diverged { .. } => is_later || is_other(),
        };
        if !is_right {
            self.fail(format!("{} was stopped without a reason: {stop:?}", actor.letter as char));
        }
    }

    /// Readers find the generation that it owns; everything before that is in its log too.
    pub(super) fn check_won(&mut self, who: usize, saved: &Saved) {
        let plan = self.plan();
        let mut seals = plan.iter().flat_map(|plan| &plan.seals);
        if !seals.any(|seal| genesis(seal) == saved.point.chain) {
            self.fail(format!("nobody finds the generation {}", saved.generation));
        }
        let plan = plan.filter(|plan| plan.generation == saved.generation);
        let actor = &self.actors[who];
        let cells = plan.map(|plan| cells_of(&plan)).unwrap_or_default();
        let is_other = |(at, letter): (&u64, &u8)| {
            let own = actor.local(*at);
            *at < saved.point.lsn && own != *letter && own != LOST && *letter != LOST
        };
        let other = cells.iter().find(|(at, letter)| is_other((at, letter)));
        if let Some((at, _)) = other {
            self.fail(format!("{} owns what it never had at {at}", actor.letter as char));
        }
    }

    /// The log removes only stored cells.
    pub(super) fn check_trimmed(&mut self, who: usize) {
        let Some(plan) = self.plan() else { return };
        let (begin, cells) = (self.actors[who].begin, cells_of(&plan));
        let own = self.actors[who].from.0;
        let later = plan.seals.iter().filter(|seal| seal.generation >= own);
        // One that took over has cut off the part behind.
        let end = later.map(|seal| seal.fork).fold(begin, u64::min);
        if let Some(at) = (plan.begin..end).find(|at| !cells.contains_key(at)) {
            self.fail(format!("{at} was let go, and is not stored"));
        }
    }

    /// Each actor continues alone, until everything durable is shipped or it is stopped for a
    /// reason.
    pub(super) fn check_going_on(&mut self) {
        for who in 0..self.actors.len() {
            let alone = World { left: Budget { flight: 1, ..Budget::default() }, ..self.clone() };
            if let Err(fault) = alone.alone(who) {
                return self.fail(fault);
            }
        }
    }

    fn alone(mut self, who: usize) -> Result<(), String> {
        let does = [Action::Starts, Action::Answers, Action::Ships, Action::ShipsGap];
        for _ in 0..SOLO_STEPS {
            let own = self.steps_of_one(who);
            let Some(step) = own.into_iter().rfind(|step| does.contains(&step.action)) else {
                break;
            };
            self = step.next;
        }
        let actor = &self.actors[who];
        let is_done = match &actor.process {
            Process::Owning(owner) => owner.is_idle() && owner.shipped().lsn >= actor.durable,
            Process::Down => actor.saved.is_none() && actor.intent.is_none(),
            process => process.is_over(),
        };
        match (&self.fault, is_done) {
            (Some(fault), _) => Err(fault.clone()),
            (None, true) => Ok(()),
            (None, false) => Err(format!("{} cannot go on", actor.letter as char)),
        }
    }
}

/// Whether a new actor can take the log over and ship one cell more.
fn goes_on(mut store: Store) -> bool {
    let intent = Intent { nonce: u128::MAX, fork: None, only: None, is_exact: false };
    let mut claim = Claim::new(intent, 0, ORIGIN);
    for _ in 0..SOLO_STEPS {
        let Some(ask) = claim.ask() else { break };
        claim.answer(answer(&mut store, &ask));
    }
    match claim.outcome() {
        Some(Claimed::Won { saved, .. }) => ships_one(store, &saved),
        _ => false,
    }
}

fn ships_one(mut store: Store, saved: &Saved) -> bool {
    let (start, end) = (saved.point.lsn, saved.point.lsn + 1);
    let mut owner = Owner::new(saved, 1, false);
    owner.set_local(0, end);
    for _ in 0..SOLO_STEPS {
        if let Some(job) = owner.poll() {
            owner.answer(job.at, answer(&mut store, &job.ask));
        } else if owner.next_start() == Some(start) {
            owner.push_chunk(Link { start, end, file: None, content: content(b"z") });
        } else {
            break;
        }
    }
    owner.shipped().lsn == end
}

fn answer(store: &mut Store, ask: &Ask) -> Answer {
    match ask {
        Ask::Create(header) => {
            let object = Object { header: *header, marks: Vec::new(), log: Vec::new() };
            Answer::Created(store.create(object))
        }
        ask => store.answer(ask),
    }
}
