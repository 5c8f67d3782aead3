//! The next possible events.

use super::action::Action;
use super::actor::{Process, SEGMENT};
use super::store::{ORIGIN, Object};
use super::world::World;
use crate::decide::reader::Reader;
use crate::decide::rules::{Broken, breaks};
use crate::decide::{Ask, Intent, Owner};

/// One step, and the world behind it.
pub(super) struct Step {
    pub(super) action: Action,
    /// Empty where no call reads it.
    pub(super) name: String,
    pub(super) next: World,
}

pub(super) struct Steps {
    all: Vec<Step>,
    is_named: bool,
}

impl World {
    /// Every world that one step leads to. They come in the same order each time.
    pub(super) fn steps(&self, is_named: bool) -> Vec<Step> {
        let mut all = Steps { all: Vec::new(), is_named };
        for who in 0..self.actors.len() {
            self.steps_of(who, &mut all);
        }
        self.steps_of_floats(&mut all);
        self.steps_of_deleters(&mut all);
        self.steps_of_restorer(&mut all);
        all.all
    }

    /// The steps that one machine can do.
    pub(super) fn steps_of_one(&self, who: usize) -> Vec<Step> {
        let mut all = Steps { all: Vec::new(), is_named: false };
        self.steps_of(who, &mut all);
        all.all
    }

    pub(super) fn step(
        &self,
        all: &mut Steps,
        action: Action,
        name: impl FnOnce() -> String,
        does: impl FnOnce(&mut World),
    ) {
        let mut next = self.clone();
        does(&mut next);
        next.settle();
        let name = if all.is_named { name() } else { String::new() };
        all.all.push(Step { action, name, next });
    }

    /// A step of a machine.
    pub(super) fn acts(
        &self,
        all: &mut Steps,
        who: usize,
        action: Action,
        name: &str,
        does: impl FnOnce(&mut World),
    ) {
        let letter = self.actors[who].letter as char;
        self.step(all, action, || format!("{letter} {name}"), does);
    }

    fn steps_of(&self, who: usize, all: &mut Steps) {
        let actor = &self.actors[who];
        for index in 0..actor.flight.len() {
            self.steps_of_request(who, index, all);
        }
        match &actor.process {
            Process::Owning(owner) => self.steps_of_owner(who, owner, all),
            Process::Down | Process::Fenced | Process::Diverged => self.steps_down(who, all),
            _ => {}
        }
        if actor.process.is_alive() && self.left.crashes > 0 {
            self.steps_dying(who, all);
        }
        if actor.process.is_alive() && self.left.power_cuts > 0 {
            self.steps_power_cut(who, all);
        }
        if !actor.process.is_over() && (actor.saved.is_some() || !actor.log.is_empty()) {
            self.steps_local(who, all);
        }
        if self.left.copies > 0 && actor.saved.is_some() {
            self.acts(all, who, Action::Copied, "is copied", |world| {
                world.left.copies -= 1;
                world.actors.push(world.actors[who].copy());
            });
        }
        self.steps_delete(who, all);
    }

    fn steps_of_request(&self, who: usize, index: usize, all: &mut Steps) {
        let letter = self.actors[who].letter as char;
        let (at, ask) = self.actors[who].flight[index].clone();
        let name = || format!("{letter}: {ask:?}");
        self.step(all, Action::Answers, name, |world| {
            world.actors[who].flight.remove(index);
            let answer = world.do_ask(who, &ask);
            world.answer(who, at, answer);
        });
        if let (Ask::Create(header), 1..) = (&ask, self.left.floats) {
            self.acts(all, who, Action::Retries, "tries a request again", |world| {
                world.left.floats -= 1;
                world.float(world.object(who, *header));
            });
        }
    }

    fn steps_local(&self, who: usize, all: &mut Steps) {
        let actor = &self.actors[who];
        if (actor.log.len() as u64) < self.left.cells {
            self.acts(all, who, Action::Appends, "appends", |world| {
                let actor = &mut world.actors[who];
                actor.log.push(actor.letter);
                if world.left.power_cuts == 0 {
                    actor.durable = actor.log.len() as u64;
                }
            });
        }
        if actor.durable < actor.log.len() as u64 {
            self.acts(all, who, Action::Commits, "commits", |world| {
                world.actors[who].durable = world.actors[who].log.len() as u64;
            });
        }
    }

    fn steps_down(&self, who: usize, all: &mut Steps) {
        let actor = &self.actors[who];
        let is_down = actor.process == Process::Down;
        if is_down && (actor.saved.is_some() || actor.intent.is_some()) {
            self.acts(all, who, Action::Starts, "starts", |world| world.start(who));
        }
        if self.left.claims > 0 && actor.intent.is_none() {
            self.steps_take_over(who, all);
        }
        if is_down && self.left.old_files > 0 && actor.saved != actor.first_saved {
            self.acts(all, who, Action::OldFile, "gets an old state file", |world| {
                world.left.old_files -= 1;
                let actor = &mut world.actors[who];
                actor.saved = actor.first_saved.clone();
                actor.intent = None;
            });
        }
    }

    fn steps_take_over(&self, who: usize, all: &mut Steps) {
        let actor = &self.actors[who];
        let Some(plan) = self.plan() else { return };
        let end = actor.common_end(&plan, 0);
        self.acts(all, who, Action::TakesOver, "takes over", |world| {
            world.left.claims -= 1;
            world.claim(who, |nonce| Intent::take_over(nonce, plan.generation, end));
        });
        if actor.saved.is_none() && actor.log.is_empty() && plan.end.lsn > 0 {
            self.acts(all, who, Action::Restores, "restores", |world| {
                world.restore_machine(who, &plan);
            });
        }
    }

    fn steps_dying(&self, who: usize, all: &mut Steps) {
        let creates = self.actors[who].flight.iter().filter_map(|(_, ask)| match ask {
            Ask::Create(header) => Some(self.object(who, *header)),
            _ => None,
        });
        let creates: Vec<Object> = creates.collect();
        let die = |world: &mut World| {
            world.left.crashes -= 1;
            world.actors[who].flight.clear();
            world.actors[who].process = Process::Down;
        };
        self.acts(all, who, Action::Dies, "dies, nothing arrives", die);
        if creates.len() <= usize::from(self.left.floats) && !creates.is_empty() {
            self.acts(all, who, Action::DiesSending, "dies, its requests go on", |world| {
                world.left.floats -= creates.len() as u8;
                creates.into_iter().for_each(|object| world.float(object));
                die(world);
            });
        }
    }

    fn steps_power_cut(&self, who: usize, all: &mut Steps) {
        self.acts(all, who, Action::PowerCut, "has a power cut", |world| {
            world.left.power_cuts -= 1;
            let actor = &mut world.actors[who];
            actor.flight.clear();
            actor.process = Process::Down;
            actor.log.truncate(actor.durable as usize);
            actor.letter = actor.letter.to_ascii_uppercase();
        });
    }

    fn steps_of_owner(&self, who: usize, owner: &Owner, all: &mut Steps) {
        let actor = &self.actors[who];
        self.steps_push(who, owner, all);
        let saved = actor.saved.as_ref().filter(|saved| saved.generation == owner.generation());
        if saved.is_some_and(|saved| saved.point != owner.shipped()) {
            self.acts(all, who, Action::Saves, "saves", |world| {
                world.do_ask(who, &Ask::Save);
            });
        }
        let end = owner.shipped().lsn;
        let is_saved = saved.is_some_and(|saved| saved.point.lsn == end);
        if self.left.claims > 0 && owner.is_idle() && is_saved {
            self.acts(all, who, Action::Rotates, "begins a generation", |world| {
                world.left.claims -= 1;
                world.claim(who, |nonce| Intent::rotate(nonce, owner.generation(), end));
            });
        }
        if self.left.forks > 0 && end > actor.begin && is_saved {
            self.step_truncate(who, owner.generation(), end, all);
        }
        let saved = saved.map_or(0, |saved| saved.point.lsn);
        self.steps_let_go(who, if breaks(Broken::HoldBeforeSave) { end } else { saved }, all);
        if self.left.merges > 0 {
            self.steps_merge(who, owner, saved, all);
        }
    }

    fn step_truncate(&self, who: usize, generation: u32, end: u64, all: &mut Steps) {
        let Some(plan) = self.plan() else { return };
        self.acts(all, who, Action::Truncates, "is truncated", |world| {
            world.left.forks -= 1;
            let actor = &mut world.actors[who];
            actor.log.truncate(end as usize - 1);
            actor.durable = end - 1;
            actor.letter += 10;
            let fork = actor.common_end(&plan, end - 1);
            match fork < end {
                true => world.claim(who, |nonce| Intent::go_back(nonce, generation, fork)),
                false => world.start(who),
            }
        });
    }

    fn steps_let_go(&self, who: usize, hold: u64, all: &mut Steps) {
        let actor = &self.actors[who];
        for begin in actor.begin + 1..=hold.min(actor.durable) {
            if self.left.trims > 0 {
                self.acts(all, who, Action::Trims, &format!("trims to {begin}"), |world| {
                    world.left.trims -= 1;
                    world.actors[who].begin = begin;
                    world.check_trimmed(who);
                });
            }
        }
        if self.left.overruns > 0 && actor.begin < actor.durable {
            self.acts(all, who, Action::Overruns, "loses a cell", |world| {
                world.left.overruns -= 1;
                world.actors[who].begin += 1;
            });
        }
    }

    fn steps_push(&self, who: usize, owner: &Owner, all: &mut Steps) {
        let actor = &self.actors[who];
        let Some(start) = owner.next_start() else { return };
        if start < actor.begin {
            return self.acts(all, who, Action::ShipsGap, "ships a gap", |world| {
                let end = world.actors[who].begin;
                world.own(who, |owner| owner.push_gap(end));
            });
        }
        let all_of_it = breaks(Broken::ShipBeyondDurable);
        let durable = if all_of_it { actor.log.len() as u64 } else { actor.durable };
        let most = durable.min((start / SEGMENT + 1) * SEGMENT);
        for end in start + 1..=most {
            let link = actor.link(start, end).expect("what is durable is here");
            self.acts(all, who, Action::Ships, &format!("ships {start}..{end}"), |world| {
                world.own(who, |owner| {
                    owner.push_chunk(link);
                });
            });
        }
    }

    fn steps_of_floats(&self, all: &mut Steps) {
        for index in 0..self.floats.len() {
            let name = || format!("old request {index} lands");
            self.step(all, Action::Lands, name, |world| {
                let object = world.floats.remove(index);
                world.store.create(object);
            });
        }
    }

    fn steps_of_restorer(&self, all: &mut Steps) {
        if let Some((reader, _)) = &self.restorer {
            let ask = reader.ask().expect("it is not done");
            let name = || format!("restorer: {ask:?}");
            self.step(all, Action::RestorerReads, name, |world| {
                let answer = world.store.answer(&ask);
                let (reader, _) = world.restorer.as_mut().expect("it restores");
                reader.answer(answer);
            });
        } else if self.left.restores > 0 {
            let name = || "a restore begins".to_string();
            self.step(all, Action::RestoreBegins, name, |world| {
                world.left.restores -= 1;
                world.restorer = Some((Reader::new(0, ORIGIN), world.acked.clone()));
            });
        }
    }
}
