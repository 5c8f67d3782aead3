//! A modelled store and those who work on it. One position is one cell, which holds one letter.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::decide::reader::{Plan, Reader};
use crate::decide::rules::{Broken, breaks};
use crate::decide::{
    Answer, Ask, Claim, Claimed, Intent, Keep, Owner, Point, Resume, Resumed, Saved, deletable,
};
use crate::object::{FileMark, Hash, Header, Key, Kind, Link, Mark};

/// What a cell of a gap holds.
const LOST: u8 = b'-';
/// Cells of a segment.
const SEGMENT: u64 = 2;

/// What may happen how often.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Budget {
    pub(super) cells: u64,
    pub(super) flight: usize,
    pub(super) crashes: u8,
    pub(super) floats: u8,
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
}

#[allow(clippy::large_enum_variant, reason = "one for each actor")]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Process {
    Down,
    Resuming(Resume),
    Owning(Owner),
    Claiming(Claim),
    Fenced,
    Diverged,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Actor {
    pub(super) letter: u8,
    pub(super) log: Vec<u8>,
    pub(super) durable: u64,
    pub(super) begin: u64,
    pub(super) saved: Option<Saved>,
    pub(super) first_saved: Option<Saved>,
    pub(super) from: (u32, Point),
    pub(super) intent: Option<Intent>,
    pub(super) ended: Option<(u32, Point)>,
    pub(super) process: Process,
    pub(super) flight: Vec<(Point, Ask)>,
}

type Stored = (Header, Vec<Mark>);
type Acked = BTreeMap<(u32, u64), u8>;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct World {
    store: BTreeMap<Key, Rc<Stored>>,
    pub(super) actors: Vec<Actor>,
    floats: Vec<Header>,
    pub(super) left: Budget,
    acked: Acked,
    retained: u64,
    restorer: Option<(Reader, Acked)>,
    next_nonce: u128,
    pub(super) fault: Option<String>,
}

/// The chain before the first cell.
pub(super) const ORIGIN: Point = Point { lsn: 0, chain: Hash([7; 32]) };

fn content(letters: &[u8]) -> Hash {
    let mut out = [0; 32];
    out[..letters.len()].copy_from_slice(letters);
    Hash(out)
}

fn letters(header: &Header) -> Vec<u8> {
    let len = (header.end - header.start) as usize;
    match header.kind {
        Kind::Gap => vec![LOST; len],
        _ => header.content.0[..len].to_vec(),
    }
}

impl Actor {
    pub(super) fn new(letter: u8, saved: Option<Saved>) -> Actor {
        Actor {
            letter,
            log: Vec::new(),
            durable: 0,
            begin: 0,
            first_saved: saved.clone(),
            saved,
            from: (0, ORIGIN),
            intent: None,
            ended: None,
            process: Process::Down,
            flight: Vec::new(),
        }
    }

    fn link(&self, start: u64, end: u64) -> Option<Link> {
        let is_here = start >= self.begin && end <= self.log.len() as u64;
        let file = FileMark { time: None, is_continuation: false };
        is_here.then(|| Link {
            start,
            end,
            file: start.is_multiple_of(SEGMENT).then_some(file),
            content: content(&self.log[start as usize..end as usize]),
        })
    }

    fn local(&self, start: u64) -> u8 {
        match start >= self.begin {
            true => self.log.get(start as usize).copied().unwrap_or(b'?'),
            false => LOST,
        }
    }
}

impl World {
    pub(super) fn new(actors: Vec<Actor>, left: Budget) -> World {
        World {
            store: BTreeMap::new(),
            actors,
            floats: Vec::new(),
            left,
            acked: Acked::new(),
            retained: 0,
            restorer: None,
            next_nonce: 100,
            fault: None,
        }
    }

    fn create(&mut self, header: Header, marks: Vec<Mark>) -> bool {
        let key = self.named(header.key().expect("objects of a generation have names"));
        if self.store.contains_key(&key) && !breaks(Broken::UnconditionalPut) {
            return false;
        }
        self.store.insert(key, Rc::new((header, marks)));
        true
    }

    fn named(&self, key: Key) -> Key {
        match key {
            Key::Link { generation, start, .. } if breaks(Broken::KeyWithoutChain) => {
                Key::Link { generation, start, chain: 0 }
            }
            key => key,
        }
    }

    fn do_ask(&mut self, who: Option<usize>, ask: &Ask) -> Answer {
        let stored = |key: &Key| self.store.get(&self.named(*key));
        match ask {
            Ask::List(generation) => {
                let is_asked = |key: &&Key| {
                    matches!(key, Key::Merged { .. }) && key.generation() == *generation
                };
                Answer::Listed(self.store.keys().filter(is_asked).copied().collect())
            }
            Ask::Look(key) => Answer::Saw(stored(key).map(|stored| stored.0)),
            Ask::Marks(key) => Answer::Marks(stored(key).map(|stored| (**stored).clone())),
            Ask::Create(header) => Answer::Created(self.create(*header, Vec::new())),
            Ask::Local { start, end } => {
                let actor = &self.actors[who.expect("a reader has no local log")];
                Answer::Local(actor.link(*start, *end))
            }
            Ask::Save => {
                let actor = &mut self.actors[who.expect("a reader saves nothing")];
                if let Process::Owning(owner) = &actor.process {
                    actor.saved = Some(owner.saved());
                }
                Answer::Saved
            }
        }
    }

    /// Every world that one step leads to, with what the step was.
    pub(super) fn steps(&self) -> Vec<(String, World)> {
        let mut all = Vec::new();
        for who in 0..self.actors.len() {
            self.steps_of(who, &mut all);
        }
        for index in 0..self.floats.len() {
            self.step(
                &mut all,
                || format!("old request {index} lands"),
                |world| {
                    let header = world.floats.remove(index);
                    world.create(header, Vec::new());
                },
            );
        }
        self.steps_of_restorer(&mut all);
        all
    }

    fn step(
        &self,
        all: &mut Vec<(String, World)>,
        name: impl FnOnce() -> String,
        does: impl FnOnce(&mut World),
    ) {
        let mut next = self.clone();
        does(&mut next);
        next.settle();
        all.push((name(), next));
    }

    fn steps_of(&self, who: usize, all: &mut Vec<(String, World)>) {
        let actor = &self.actors[who];
        let letter = actor.letter as char;
        for index in 0..actor.flight.len() {
            let (at, ask) = actor.flight[index].clone();
            self.step(
                all,
                || format!("{letter}: {ask:?}"),
                |world| {
                    world.actors[who].flight.remove(index);
                    let answer = world.do_ask(Some(who), &ask);
                    world.answer(who, at, answer);
                },
            );
            if let (Ask::Create(header), 1..) = (&ask, self.left.floats) {
                self.step(
                    all,
                    || format!("{letter}: a request is tried again"),
                    |world| {
                        world.left.floats -= 1;
                        world.float(*header);
                    },
                );
            }
        }
        match &actor.process {
            Process::Down => self.steps_down(who, all),
            Process::Owning(owner) => self.steps_of_owner(who, owner, all),
            _ => {}
        }
        if !matches!(actor.process, Process::Down | Process::Fenced | Process::Diverged)
            && self.left.crashes > 0
        {
            self.crashes(who, all);
        }
        if (actor.log.len() as u64) < self.left.cells
            && !matches!(actor.process, Process::Fenced | Process::Diverged)
            && actor.saved.is_some()
        {
            self.step(
                all,
                || format!("{letter} appends"),
                |world| {
                    let actor = &mut world.actors[who];
                    actor.log.push(actor.letter);
                    if world.left.power_cuts == 0 {
                        actor.durable = actor.log.len() as u64;
                    }
                },
            );
            if actor.durable < actor.log.len() as u64 {
                self.step(
                    all,
                    || format!("{letter} commits"),
                    |world| {
                        let actor = &mut world.actors[who];
                        actor.durable = actor.log.len() as u64;
                    },
                );
            }
        }
    }

    fn steps_down(&self, who: usize, all: &mut Vec<(String, World)>) {
        let letter = self.actors[who].letter as char;
        if self.actors[who].saved.is_some() || self.actors[who].intent.is_some() {
            self.step(all, || format!("{letter} starts"), |world| world.start(who));
        }
        let actor = &self.actors[who];
        // A claim that was begun is finished first.
        if actor.saved.is_none() && actor.intent.is_none() && self.left.claims > 0 {
            self.step(
                all,
                || format!("{letter} takes over"),
                |world| {
                    world.left.claims -= 1;
                    world.claim(who, None, None);
                },
            );
        }
        if self.left.old_files > 0 && self.actors[who].saved != self.actors[who].first_saved {
            self.step(
                all,
                || format!("{letter}: an old state file"),
                |world| {
                    world.left.old_files -= 1;
                    let actor = &mut world.actors[who];
                    actor.saved = actor.first_saved.clone();
                    actor.intent = None;
                },
            );
        }
    }

    fn crashes(&self, who: usize, all: &mut Vec<(String, World)>) {
        let letter = self.actors[who].letter as char;
        let creates = self.actors[who].flight.iter().filter_map(|(_, ask)| match ask {
            Ask::Create(header) => Some(*header),
            _ => None,
        });
        let creates: Vec<Header> = creates.collect();
        let mut die = |name: &str, late: &[Header]| {
            self.step(
                all,
                || format!("{letter} dies, {name}"),
                |world| {
                    world.left.crashes -= 1;
                    world.left.floats -= late.len() as u8;
                    late.iter().for_each(|header| world.float(*header));
                    let actor = &mut world.actors[who];
                    actor.flight.clear();
                    actor.process = Process::Down;
                },
            );
        };
        die("nothing arrives", &[]);
        if creates.len() <= usize::from(self.left.floats) && !creates.is_empty() {
            die("its requests go on", &creates);
        }
        if self.left.power_cuts > 0 {
            self.step(
                all,
                || format!("{letter}: power cut"),
                |world| {
                    world.left.power_cuts -= 1;
                    let actor = &mut world.actors[who];
                    actor.flight.clear();
                    actor.process = Process::Down;
                    actor.log.truncate(actor.durable as usize);
                    actor.letter = actor.letter.to_ascii_uppercase();
                },
            );
        }
    }

    fn float(&mut self, header: Header) {
        self.floats.push(header);
        self.floats.sort_by_key(|header| (header.generation, header.start, header.after));
    }

    fn start(&mut self, who: usize) {
        let actor = &mut self.actors[who];
        actor.process = match (&actor.intent, &actor.saved) {
            (Some(intent), _) => Process::Claiming(Claim::new(*intent, actor.from.0, actor.from.1)),
            (None, Some(saved)) => Process::Resuming(Resume::new(saved.clone())),
            (None, None) => unreachable!("there is something to start from"),
        };
    }

    fn claim(&mut self, who: usize, fork: Option<u64>, only: Option<u32>) {
        let nonce = self.next_nonce;
        self.next_nonce += 1;
        let actor = &mut self.actors[who];
        actor.intent = Some(Intent { nonce, fork, only });
        actor.flight.clear();
        self.start(who);
    }

    fn steps_of_owner(&self, who: usize, owner: &Owner, all: &mut Vec<(String, World)>) {
        let actor = &self.actors[who];
        let letter = actor.letter as char;
        self.steps_push(who, owner, all);
        let is_newer = actor.saved.as_ref().is_some_and(|saved| {
            saved.point != owner.shipped() && saved.generation == owner.generation()
        });
        if is_newer {
            self.step(
                all,
                || format!("{letter} saves"),
                |world| {
                    world.do_ask(Some(who), &Ask::Save);
                },
            );
        }
        let saved = actor.saved.as_ref().map_or(0, |saved| saved.point.lsn);
        if self.left.claims > 0 && owner.is_idle() {
            self.step(
                all,
                || format!("{letter} begins a generation"),
                |world| {
                    world.left.claims -= 1;
                    world.claim(who, None, Some(owner.generation()));
                },
            );
        }
        if self.left.forks > 0 && owner.shipped().lsn > actor.begin {
            self.step(
                all,
                || format!("{letter} is truncated"),
                |world| {
                    world.left.forks -= 1;
                    let fork = owner.shipped().lsn - 1;
                    let actor = &mut world.actors[who];
                    actor.log.truncate(fork as usize);
                    actor.durable = fork;
                    actor.letter += 10;
                    world.claim(who, Some(fork), None);
                },
            );
        }
        let hold = if breaks(Broken::HoldBeforeSave) { owner.shipped().lsn } else { saved };
        if self.left.trims > 0 && actor.begin < hold {
            self.step(
                all,
                || format!("{letter} trims"),
                |world| {
                    world.left.trims -= 1;
                    world.actors[who].begin = hold;
                },
            );
        }
        if self.left.overruns > 0 && actor.begin < actor.durable {
            self.step(
                all,
                || format!("{letter} loses cells"),
                |world| {
                    world.left.overruns -= 1;
                    world.actors[who].begin += 1;
                },
            );
        }
        if self.left.merges > 0 {
            self.steps_merge(who, owner, saved, all);
        }
        self.steps_delete(who, all);
    }

    fn steps_push(&self, who: usize, owner: &Owner, all: &mut Vec<(String, World)>) {
        let actor = &self.actors[who];
        let Some(start) = owner.next_start() else { return };
        let letter = actor.letter as char;
        if start < actor.begin {
            return self.step(
                all,
                || format!("{letter} ships a gap at {start}"),
                |world| {
                    let end = world.actors[who].begin;
                    world.own(who, |owner| owner.push_gap(end));
                },
            );
        }
        let all_of_it = breaks(Broken::ShipBeyondDurable);
        let durable = if all_of_it { actor.log.len() as u64 } else { actor.durable };
        let most = durable.min((start / SEGMENT + 1) * SEGMENT);
        for end in start + 1..=most {
            let link = actor.link(start, end).expect("what is durable is here");
            self.step(
                all,
                || format!("{letter} ships {start}..{end}"),
                |world| {
                    world.own(who, |owner| {
                        owner.push_chunk(link);
                    });
                },
            );
        }
    }

    fn own(&mut self, who: usize, does: impl FnOnce(&mut Owner)) {
        let before = self.shipped(who);
        if let Process::Owning(owner) = &mut self.actors[who].process {
            does(owner);
        }
        self.note_acked(who, before);
    }

    fn shipped(&self, who: usize) -> Option<Point> {
        match &self.actors[who].process {
            Process::Owning(owner) => Some(owner.shipped()),
            _ => None,
        }
    }

    fn answer(&mut self, who: usize, at: Point, answer: Answer) {
        let before = self.shipped(who);
        let (begin, durable) = (self.actors[who].begin, self.actors[who].durable);
        match &mut self.actors[who].process {
            Process::Resuming(resume) => resume.answer(answer),
            Process::Claiming(claim) => claim.answer(answer),
            Process::Owning(owner) => {
                owner.set_local(begin, durable);
                owner.answer(at, answer);
            }
            _ => {}
        }
        self.note_acked(who, before);
    }

    fn note_acked(&mut self, who: usize, before: Option<Point>) {
        let (Some(mut at), Some(now)) = (before, self.shipped(who)) else { return };
        let Process::Owning(owner) = &self.actors[who].process else { return };
        let generation = owner.generation();
        while at.lsn < now.lsn {
            let stored = self.store.get(&self.named(at.key(generation)));
            let link = stored.filter(|stored| stored.0.before == at.chain).map(|stored| stored.0);
            let cells = match link {
                Some(header) => letters(&header),
                None => vec![self.actors[who].local(at.lsn)],
            };
            let start = at.lsn;
            at = match link {
                Some(header) => Point { lsn: header.end, chain: header.after },
                None => Point { lsn: at.lsn + 1, chain: at.chain },
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

    fn acknowledge(&mut self, generation: u32, cell: u64, letter: u8) {
        let before = self.acked.insert((generation, cell), letter);
        if before.is_some_and(|before| before != letter) {
            self.fail(format!("{cell} was acknowledged with two contents"));
        }
    }

    fn fail(&mut self, fault: String) {
        self.fault.get_or_insert(fault);
    }

    fn steps_merge(&self, who: usize, owner: &Owner, saved: u64, all: &mut Vec<(String, World)>) {
        let generation = owner.generation();
        let mut at = self.actors[who].from.1;
        while at.lsn < saved {
            let end = (at.lsn / SEGMENT + 1) * SEGMENT;
            let Some((header, marks)) = self.merged(generation, at, end) else { return };
            let next = Point { lsn: end, chain: header.after };
            let key = header.key().expect("a merged object has a name");
            let is_local = self.actors[who].link(at.lsn, end).is_some();
            if end <= saved && is_local && !self.store.contains_key(&key) {
                let letter = self.actors[who].letter as char;
                self.step(
                    all,
                    || format!("{letter} merges {}..{end}", at.lsn),
                    |world| {
                        world.left.merges -= 1;
                        world.create(header, marks);
                    },
                );
            }
            at = next;
        }
    }

    /// The merged object of a segment, made of the chunks that are there.
    fn merged(&self, generation: u32, from: Point, end: u64) -> Option<(Header, Vec<Mark>)> {
        let (mut at, mut marks, mut cells) = (from, Vec::new(), Vec::new());
        let mut file = None;
        while at.lsn < end {
            let stored = self.store.get(&self.named(at.key(generation)))?.0;
            if !matches!(stored.kind, Kind::Chunk) {
                return None;
            }
            if at == from {
                file = stored.file;
            }
            cells.extend(letters(&stored));
            at = Point { lsn: stored.end, chain: stored.after };
            marks.push(Mark { end: at.lsn, time: 0, after: at.chain });
        }
        let link = Link { start: from.lsn, end, file, content: content(&cells) };
        let header = Header::draft(Kind::Merged, generation, from.chain, link);
        let header = Header { after: at.chain, marks: marks.len() as u32, ..header };
        (at.lsn == end).then_some((header, marks))
    }

    fn steps_delete(&self, who: usize, all: &mut Vec<(String, World)>) {
        let Some((generation, end)) = self.actors[who].ended else { return };
        let letter = self.actors[who].letter as char;
        let marker = Key::Closed(generation);
        let is_closed = self.store.contains_key(&marker);
        if !is_closed {
            self.step(
                all,
                || format!("{letter} closes {generation}"),
                |world| {
                    let link =
                        Link { start: end.lsn, end: end.lsn, file: None, content: Hash::default() };
                    let header = Header::draft(Kind::Closed, generation, end.chain, link);
                    world.create(header, Vec::new());
                },
            );
        }
        if !is_closed && !breaks(Broken::MarkerAfterDelete) {
            return;
        }
        let names: Vec<Key> = self.store.keys().copied().collect();
        let mut delete = |keep: Keep, retained: u64| {
            for key in deletable(generation, end, &names, keep) {
                self.step(
                    all,
                    || format!("{letter} deletes {key}"),
                    |world| {
                        world.store.remove(&key);
                        let is_new = u8::from(retained > 0 && world.retained < retained);
                        world.left.retains = world.left.retains.saturating_sub(is_new);
                        world.retained = world.retained.max(retained);
                    },
                );
            }
        };
        delete(Keep::From(0), 0);
        if self.left.retains > 0 || self.retained > 0 {
            for start in 1..end.lsn {
                let is_start =
                    |key: &Key| matches!(key, Key::Merged { start: at, .. } if *at == start);
                if names.iter().any(is_start) || breaks(Broken::RetainAnywhere) {
                    delete(Keep::From(start), start);
                }
            }
            delete(Keep::Nothing, end.lsn);
        }
    }

    fn steps_of_restorer(&self, all: &mut Vec<(String, World)>) {
        if let Some((reader, _)) = &self.restorer {
            let ask = reader.ask();
            self.step(
                all,
                || format!("restorer: {ask:?}"),
                |world| {
                    let answer = world.do_ask(None, &ask.clone().expect("it is not done"));
                    let (reader, _) = world.restorer.as_mut().expect("it restores");
                    reader.answer(answer);
                },
            );
        } else if self.left.restores > 0 {
            self.step(
                all,
                || "a restore begins".to_string(),
                |world| {
                    world.left.restores -= 1;
                    world.restorer = Some((Reader::new(0, ORIGIN), world.acked.clone()));
                },
            );
        }
    }

    /// What follows without anybody's doing.
    fn settle(&mut self) {
        for who in 0..self.actors.len() {
            self.settle_actor(who);
        }
        if self.restorer.as_ref().is_some_and(|(reader, _)| reader.ask().is_none()) {
            let (reader, acked) = self.restorer.take().expect("it was there");
            self.check_read(reader, &acked);
        }
        self.check_now();
    }

    fn settle_actor(&mut self, who: usize) {
        let actor = &mut self.actors[who];
        let (begin, durable) = (actor.begin, actor.durable);
        let is_asked = !actor.flight.is_empty();
        match &mut actor.process {
            Process::Resuming(resume) => match resume.ask() {
                Some(ask) if !is_asked => actor.flight.push((ORIGIN, ask)),
                Some(_) => {}
                None => self.resumed(who),
            },
            Process::Claiming(claim) => match claim.ask() {
                Some(ask) if !is_asked => actor.flight.push((ORIGIN, ask)),
                Some(_) => {}
                None => self.claimed(who),
            },
            Process::Owning(owner) => {
                owner.set_local(begin, durable);
                while let Some(job) = owner.poll() {
                    actor.flight.push((job.at, job.ask));
                }
                match owner.stop() {
                    None => {}
                    Some(crate::decide::Stop::Fenced { .. }) => self.stopped(who, Process::Fenced),
                    Some(_) => self.stopped(who, Process::Diverged),
                }
            }
            _ => {}
        }
    }

    fn stopped(&mut self, who: usize, how: Process) {
        self.actors[who].flight.clear();
        self.actors[who].process = how;
    }

    fn resumed(&mut self, who: usize) {
        let Process::Resuming(resume) = self.actors[who].process.clone() else { return };
        match resume.outcome() {
            Resumed::At(saved) => self.run(who, saved),
            Resumed::Stopped(crate::decide::Stop::Fenced { .. }) => {
                self.stopped(who, Process::Fenced);
            }
            Resumed::Stopped(_) => self.stopped(who, Process::Diverged),
        }
    }

    fn run(&mut self, who: usize, saved: Saved) {
        let limit = self.left.flight;
        let has_gaps = self.left.overruns > 0 || !saved.flights.is_empty();
        self.actors[who].process = Process::Owning(Owner::new(&saved, limit, has_gaps));
        self.settle_actor(who);
    }

    fn claimed(&mut self, who: usize) {
        let Process::Claiming(claim) = self.actors[who].process.clone() else { return };
        match claim.outcome() {
            Some(Claimed::Won { saved, ended }) => self.won(who, saved, ended),
            Some(Claimed::Lost) => self.stopped(who, Process::Fenced),
            outcome => self.fail(format!("{outcome:?}")),
        }
    }

    fn won(&mut self, who: usize, saved: Saved, ended: Point) {
        let is_new = self.actors[who].saved.is_none();
        let plan = self.read_now();
        let actor = &mut self.actors[who];
        // A new machine has restored what is there.
        if let (true, Some(plan)) = (is_new, plan) {
            let cells = cells_of(&plan);
            let end = saved.point.lsn;
            actor.log = (0..end).map(|at| cells.get(&at).copied().unwrap_or(LOST)).collect();
            actor.begin = plan.begin;
            actor.durable = end;
        }
        actor.intent = None;
        actor.from = (saved.generation, saved.point);
        actor.ended = Some((saved.generation - 1, ended));
        actor.first_saved = Some(saved.clone());
        actor.saved = Some(saved.clone());
        self.run(who, saved);
    }

    fn read_now(&self) -> Option<Plan> {
        let mut reader = Reader::new(0, ORIGIN);
        // Reading changes nothing.
        let mut world = World { actors: Vec::new(), restorer: None, ..self.clone() };
        while let Some(ask) = reader.ask() {
            let answer = world.do_ask(None, &ask);
            reader.answer(answer);
        }
        reader.plan().ok()
    }

    fn check_now(&mut self) {
        match self.read_now() {
            Some(plan) => self.check_plan(&plan, &self.acked.clone()),
            None => self.fail("the log cannot be read".to_string()),
        }
    }

    fn check_read(&mut self, reader: Reader, acked: &Acked) {
        match reader.plan() {
            Ok(plan) => self.check_plan(&plan, acked),
            Err(trouble) => self.fail(format!("a restore failed: {trouble}")),
        }
    }

    /// Everything that was acknowledged, is not cut off, and is retained, is there.
    fn check_plan(&mut self, plan: &Plan, acked: &Acked) {
        let cells = cells_of(plan);
        for (&(generation, cell), letter) in acked {
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
}

fn cells_of(plan: &Plan) -> BTreeMap<u64, u8> {
    let cells = |piece: &crate::decide::Piece| {
        let until = piece.until;
        let all = (piece.header.start..).zip(letters(&piece.header));
        all.filter(move |(at, _)| *at < until).collect::<Vec<_>>()
    };
    plan.pieces.iter().flat_map(cells).collect()
}
