//! A store and its actors.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::action::{Action, Taken};
use super::actor::{Actor, Process};
use super::store::{Object, Store, cells_of};
use crate::decide::reader::{Plan, Reader};
use crate::decide::{
    Answer, Ask, Claim, Claimed, Intent, Owner, Point, Resume, Resumed, Saved, Stop,
};
use crate::object::{Key, Kind};

/// How often each event may happen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Budget {
    pub(super) cells: u64,
    pub(super) flight: usize,
    pub(super) crashes: u8,
    pub(super) floats: u8,
    /// Generations that are begun: by their owner, or by an actor that takes over.
    pub(super) claims: u8,
    pub(super) forks: u8,
    pub(super) power_cuts: u8,
    pub(super) overruns: u8,
    pub(super) trims: u8,
    pub(super) merges: u8,
    pub(super) retains: u8,
    pub(super) restores: u8,
    /// Backups of the state file that are put back.
    pub(super) old_files: u8,
    /// Copies of a directory, with its state file.
    pub(super) copies: u8,
}

/// The acknowledged letters, by generation and cell.
pub(super) type Acked = Rc<BTreeMap<(u32, u64), u8>>;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct World {
    pub(super) store: Store,
    pub(super) actors: Vec<Actor>,
    /// Requests that their sender does not wait for any more.
    pub(super) floats: Vec<Object>,
    /// The objects that an actor has found deletable, and may delete at any time.
    pub(super) doomed: Vec<Key>,
    pub(super) left: Budget,
    pub(super) acked: Acked,
    pub(super) retained: u64,
    pub(super) restorer: Option<(Reader, Acked)>,
    pub(super) next_nonce: u128,
    pub(super) fault: Option<String>,
}

impl World {
    pub(super) fn new(actors: Vec<Actor>, left: Budget) -> World {
        World {
            store: Store::default(),
            actors,
            floats: Vec::new(),
            doomed: Vec::new(),
            left,
            acked: Acked::default(),
            retained: 0,
            restorer: None,
            next_nonce: 100,
            fault: None,
        }
    }

    pub(super) fn fail(&mut self, fault: String) {
        self.fault.get_or_insert(fault);
    }

    pub(super) fn plan(&self) -> Option<Plan> {
        self.store.read().ok()
    }

    pub(super) fn do_ask(&mut self, who: usize, ask: &Ask) -> Answer {
        match ask {
            Ask::Create(header) => {
                let object = self.object(who, *header);
                self.check_sent(who, &object);
                Answer::Created(self.store.create(object))
            }
            Ask::Local { start, end } => Answer::Local(self.actors[who].link(*start, *end)),
            Ask::Save => {
                let actor = &mut self.actors[who];
                if let Process::Owning(owner) = &actor.process {
                    actor.saved = Some(owner.saved());
                }
                Answer::Saved
            }
            ask => self.store.answer(ask),
        }
    }

    /// The object that a create sends.
    pub(super) fn object(&self, who: usize, header: crate::object::Header) -> Object {
        let log = match header.kind {
            Kind::Chunk => self.actors[who].log_until(header.end),
            _ => Vec::new(),
        };
        Object { header, marks: Vec::new(), log }
    }

    pub(super) fn float(&mut self, object: Object) {
        self.floats.push(object);
        let order = |object: &Object| {
            let header = object.header;
            (header.generation, header.start, header.end, header.after, object.log.clone())
        };
        self.floats.sort_by_key(order);
    }

    pub(super) fn start(&mut self, who: usize) {
        let actor = &mut self.actors[who];
        actor.flight.clear();
        actor.process = match (&actor.intent, &actor.saved) {
            (Some(intent), _) => Process::Claiming(Claim::new(*intent, 0, super::store::ORIGIN)),
            (None, Some(saved)) => Process::Resuming(Resume::new(saved.clone())),
            (None, None) => unreachable!("there is something to start from"),
        };
    }

    pub(super) fn claim(&mut self, who: usize, intent: impl FnOnce(u128) -> Intent) {
        self.actors[who].intent = Some(intent(self.next_nonce));
        self.next_nonce += 1;
        self.start(who);
    }

    /// Lets the owner do something, and notes what it acknowledges by that.
    pub(super) fn own(&mut self, who: usize, does: impl FnOnce(&mut Owner)) {
        let before = self.shipped(who);
        let (begin, durable) = (self.actors[who].begin, self.actors[who].durable);
        if let Process::Owning(owner) = &mut self.actors[who].process {
            owner.set_local(begin, durable);
            does(owner);
        }
        self.note_acked(who, before);
    }

    pub(super) fn shipped(&self, who: usize) -> Option<Point> {
        match &self.actors[who].process {
            Process::Owning(owner) => Some(owner.shipped()),
            _ => None,
        }
    }

    pub(super) fn answer(&mut self, who: usize, at: Point, answer: Answer) {
        match &mut self.actors[who].process {
            Process::Resuming(resume) => resume.answer(answer),
            Process::Claiming(claim) => claim.answer(answer),
            Process::Owning(_) => self.own(who, |owner| owner.answer(at, answer)),
            _ => {}
        }
    }

    /// The steps that follow by themselves.
    pub(super) fn settle(&mut self) {
        for who in 0..self.actors.len() {
            self.settle_actor(who);
        }
        if self.restorer.as_ref().is_some_and(|(reader, _)| reader.ask().is_none()) {
            let (reader, acked) = self.restorer.take().expect("it was there");
            match reader.plan() {
                Ok(plan) => self.check_plan(&plan, &acked),
                Err(trouble) => self.fail(format!("a restore failed: {trouble}")),
            }
        }
    }

    fn settle_actor(&mut self, who: usize) {
        let actor = &mut self.actors[who];
        let (begin, durable) = (actor.begin, actor.durable);
        let is_asked = !actor.flight.is_empty();
        let next = match &mut actor.process {
            Process::Resuming(resume) => resume.ask(),
            Process::Claiming(claim) => claim.ask(),
            Process::Owning(owner) => {
                owner.set_local(begin, durable);
                while let Some(job) = owner.poll() {
                    actor.flight.push((job.at, job.ask));
                }
                return self.settle_owner(who);
            }
            _ => return,
        };
        match next {
            Some(ask) if !is_asked => actor.flight.push((super::store::ORIGIN, ask)),
            Some(_) => {}
            None => self.ended(who),
        }
    }

    fn settle_owner(&mut self, who: usize) {
        let Process::Owning(owner) = &self.actors[who].process else { return };
        if let Some(stop) = owner.stop() {
            self.stopped(who, stop);
        }
    }

    fn ended(&mut self, who: usize) {
        match self.actors[who].process.clone() {
            Process::Resuming(resume) => match resume.outcome() {
                Resumed::At(saved) => self.run(who, saved),
                Resumed::Stopped(stop) => self.stopped(who, stop),
            },
            Process::Claiming(claim) => match claim.outcome() {
                Some(Claimed::Won { saved, ended }) => self.won(who, saved, ended),
                Some(Claimed::Lost) => self.stopped(who, Stop::Fenced { at: 0 }),
                Some(Claimed::Moved) => self.moved(who),
                outcome => self.fail(format!("{outcome:?}")),
            },
            _ => {}
        }
    }

    fn stopped(&mut self, who: usize, stop: Stop) {
        self.check_stop(who, stop);
        let actor = &mut self.actors[who];
        actor.flight.clear();
        actor.intent = None;
        actor.process = match stop {
            Stop::Fenced { .. } => Process::Fenced,
            Stop::Diverged { .. } => Process::Diverged,
        };
    }

    fn run(&mut self, who: usize, saved: Saved) {
        let limit = self.left.flight;
        let has_gaps = self.left.overruns > 0 || !saved.flights.is_empty();
        self.actors[who].process = Process::Owning(Owner::new(&saved, limit, has_gaps));
        self.settle_actor(who);
    }

    fn moved(&mut self, who: usize) {
        self.actors[who].intent = None;
        self.start(who);
        self.settle_actor(who);
    }

    fn won(&mut self, who: usize, saved: Saved, ended: Point) {
        self.check_won(who, &saved);
        let actor = &mut self.actors[who];
        actor.intent = None;
        actor.from = (saved.generation, saved.point);
        actor.ended = Some((saved.generation - 1, ended));
        actor.first_saved = Some(saved.clone());
        actor.saved = Some(saved.clone());
        self.run(who, saved);
    }

    /// A machine without a log gets the stored records.
    pub(super) fn restore_machine(&mut self, who: usize, plan: &Plan) {
        let cells = cells_of(plan);
        let actor = &mut self.actors[who];
        actor.log = (0..plan.end.lsn).map(|at| cells.get(&at).copied().unwrap_or(b'-')).collect();
        actor.begin = plan.begin;
        actor.durable = plan.end.lsn;
    }

    /// The outcomes of a step, beside its name.
    pub(super) fn outcomes(&self, before: &World, taken: &mut Taken) {
        for (now, before) in self.actors.iter().zip(&before.actors) {
            let is_claiming = matches!(before.process, Process::Claiming(_));
            match &now.process {
                process if *process == before.process => {}
                Process::Owning(_) if is_claiming => taken.add(Action::Won),
                Process::Resuming(_) if is_claiming => taken.add(Action::Moved),
                Process::Fenced if is_claiming => taken.add(Action::Lost),
                Process::Fenced => taken.add(Action::Fenced),
                Process::Diverged => taken.add(Action::Diverged),
                _ => {}
            }
        }
    }
}
