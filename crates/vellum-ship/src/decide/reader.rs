//! Reading: where the log ends, and which objects a restore must fetch.
//!
//! The chain is the truth; a list of names is a hint. An absent object is the end only while
//! nothing of its generation can have been deleted, which the closed marker says. In a closed
//! generation the marker says where it ends, and a hole before that end is retention, if the list
//! of merged objects that was made after the hole was seen has nothing new.

use super::rules::{Broken, breaks};
use super::{Answer, Ask, Point};
use crate::object::{Hash, Header, Key, Kind, hash};

/// An object, or the part of one, that is part of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Piece {
    /// Its header.
    pub header: Header,
    /// The position at which what counts of it ends: a later generation may begin inside of it.
    pub until: u64,
}

impl Piece {
    /// Bytes of the log in front of `end` that count of it: fewer than positions, where a file of a
    /// text log ends.
    pub fn bytes_before(&self, end: u64) -> u64 {
        let positions = self.until.min(end).saturating_sub(self.header.start);
        self.header.raw_bytes.min(positions)
    }
}

/// The parts of a stored log.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Plan {
    /// Chunks, gaps and merged objects without a hole, from the oldest to the newest.
    pub pieces: Vec<Piece>,
    /// The first position that is there.
    pub begin: u64,
    /// The end of the log, where the next object will be.
    pub end: Point,
    /// The newest generation.
    pub generation: u32,
    /// The seals that were passed, from the oldest to the newest.
    pub seals: Vec<Header>,
}

impl Plan {
    /// Bytes of the log.
    pub fn bytes(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.bytes_before(self.end.lsn)).sum()
    }
}

/// Why reading cannot continue.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Trouble {
    /// The objects contradict each other.
    #[error("the object {0} does not fit into the chain")]
    Damaged(String),
    /// Objects went while they were read, again and again.
    #[error("objects were deleted again and again while they were read")]
    Unstable,
}

/// More than any retention and any fleet of claimants do during one read.
const REPLANS_MAX: u32 = 1000;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Stage {
    Marker,
    List,
    /// A hole was seen; has the list changed?
    Relist,
    Walk,
    /// The merged object from which to continue behind a hole, or with which to begin.
    Jump(Key),
    /// A seal, or nothing, where the marker was absent before.
    Confirm(Option<Header>),
    Done,
}

/// Reads a log from a point on its chain.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reader {
    generation: u32,
    /// Where the generation begins.
    from: Point,
    at: Point,
    stage: Stage,
    /// Whether only the end is wanted.
    is_quick: bool,
    /// The generation into which it does not look.
    stop_at: Option<u32>,
    closed: Option<Point>,
    merged: Vec<Key>,
    /// The position behind which a merged object has not been used.
    used: u64,
    pieces: Vec<Piece>,
    /// The number of pieces that earlier generations have.
    earlier: usize,
    begin: u64,
    seals: Vec<Header>,
    replans: u32,
    trouble: Option<Trouble>,
}

impl Reader {
    /// Reads everything from a point on. Of a whole log: generation 0, the begin that the object
    /// `log` names, and the hash of that object.
    pub fn new(generation: u32, from: Point) -> Reader {
        Reader {
            generation,
            from,
            at: from,
            stage: Stage::Marker,
            is_quick: false,
            stop_at: None,
            closed: None,
            merged: Vec::new(),
            used: from.lsn,
            pieces: Vec::new(),
            earlier: 0,
            begin: from.lsn,
            seals: Vec::new(),
            replans: 0,
            trouble: None,
        }
    }

    /// Finds the end with few requests. The pieces of the plan are not all.
    pub fn end_only(generation: u32, from: Point) -> Reader {
        Reader { is_quick: true, ..Reader::new(generation, from) }
    }

    /// Finds the seals before a generation with few requests. If the plan's generation is an
    /// earlier one, the objects do not lead there.
    pub fn seals_before(last: u32, generation: u32, from: Point) -> Reader {
        let stage = if generation < last { Stage::Marker } else { Stage::Done };
        Reader { stage, stop_at: Some(last), ..Reader::end_only(generation, from) }
    }

    /// The next request; nothing when it is done.
    pub fn ask(&self) -> Option<Ask> {
        let generation = self.generation;
        Some(match &self.stage {
            Stage::Marker | Stage::Confirm(_) => Ask::Look(Key::Closed(generation)),
            Stage::List | Stage::Relist => Ask::List(generation),
            Stage::Jump(key) => Ask::Look(*key),
            Stage::Walk => Ask::Look(self.next_key()),
            Stage::Done => return None,
        })
    }

    /// The plan, when there is nothing more to ask.
    pub fn plan(self) -> Result<Plan, Trouble> {
        match self.trouble {
            Some(trouble) => Err(trouble),
            None => Ok(self.planned()),
        }
    }

    /// Takes what came of the last ask.
    pub fn answer(&mut self, answer: Answer) {
        match (std::mem::replace(&mut self.stage, Stage::Done), answer) {
            (Stage::Marker, Answer::Saw(marker)) => self.begin_generation(marker),
            (Stage::List, Answer::Listed(names)) => self.listed(names),
            (Stage::Relist, Answer::Listed(names)) => self.relisted(names),
            (Stage::Jump(key), Answer::Saw(header)) => self.jumped(key, header),
            (Stage::Walk, Answer::Saw(header)) => self.walked(header),
            (Stage::Confirm(seen), Answer::Saw(marker)) => self.confirmed(seen, marker),
            (stage, answer) => unreachable!("{stage:?} was answered by {answer:?}"),
        }
    }

    fn next_key(&self) -> Key {
        let fits = |key: &&Key| match **key {
            Key::Merged { start, chain, .. } => {
                start == self.at.lsn && chain == self.at.chain.prefix()
            }
            _ => false,
        };
        let merged = self.merged.iter().find(fits).copied();
        match self.closed != Some(self.at) && !breaks(Broken::ChunksFirst) {
            true => merged.unwrap_or(self.at.key(self.generation)),
            false => self.at.key(self.generation),
        }
    }

    fn begin_generation(&mut self, marker: Option<Header>) {
        self.closed = marker.map(end_of);
        match self.closed {
            Some(end) if self.is_quick => self.go_to(end),
            _ => self.stage = Stage::List,
        }
    }

    fn go_to(&mut self, point: Point) {
        self.at = point;
        self.pieces.clear();
        self.earlier = 0;
        self.begin = point.lsn;
        self.stage = Stage::Walk;
    }

    fn listed(&mut self, names: Vec<Key>) {
        self.merged = merged_of(self.generation, names);
        self.pieces.truncate(self.earlier);
        self.at = self.from;
        self.used = self.from.lsn;
        self.stage = match self.merged.last() {
            Some(last) if self.is_quick && start_of(last) >= self.from.lsn => Stage::Jump(*last),
            _ => Stage::Walk,
        };
    }

    /// Whether what was absent is absent by retention.
    fn relisted(&mut self, names: Vec<Key>) {
        if merged_of(self.generation, names.clone()) != self.merged {
            return self.replan_with(names);
        }
        let next = self.merged.iter().find(|key| start_of(key) >= self.used);
        match (next.copied(), self.closed) {
            (Some(next), _) => self.stage = Stage::Jump(next),
            (None, Some(end)) => self.go_to(end),
            (None, None) => unreachable!("a hole is looked into in closed generations"),
        }
    }

    fn replan_with(&mut self, names: Vec<Key>) {
        self.replans += 1;
        match self.replans > REPLANS_MAX {
            true => self.fail(Trouble::Unstable),
            false => self.listed(names),
        }
    }

    fn replan(&mut self) {
        self.replans += 1;
        self.stage = Stage::Marker;
        if self.replans > REPLANS_MAX {
            self.fail(Trouble::Unstable);
        }
    }

    fn jumped(&mut self, key: Key, header: Option<Header>) {
        let Some(header) = header else { return self.replan() };
        if header.key() != Some(key) {
            return self.damaged(key);
        }
        self.go_to(Point { lsn: header.start, chain: header.before });
        self.take(header);
    }

    fn take(&mut self, header: Header) {
        if header.kind == Kind::Merged {
            self.used = header.end;
        }
        self.pieces.push(Piece { header, until: header.end });
        self.at = Point { lsn: header.end, chain: header.after };
        self.stage = Stage::Walk;
    }

    fn walked(&mut self, header: Option<Header>) {
        let key = self.next_key();
        let fits = |header: &Header| header.key() == Some(key) && header.before == self.at.chain;
        match header {
            Some(header) if !fits(&header) => self.damaged(key),
            Some(header) if header.kind != Kind::Seal => self.take(header),
            None if matches!(key, Key::Merged { .. }) => self.replan(),
            seen if breaks(Broken::ReaderTrustsAbsence) => self.accept(seen),
            seen => match self.closed {
                Some(end) if end == self.at => self.at_end(seen),
                Some(_) => self.stage = Stage::Relist,
                None => self.stage = Stage::Confirm(seen),
            },
        }
    }

    /// The end of a closed generation: its seal is never deleted.
    fn at_end(&mut self, seen: Option<Header>) {
        match seen {
            Some(seal) => self.accept(Some(seal)),
            None => self.damaged(self.at.key(self.generation)),
        }
    }

    fn confirmed(&mut self, seen: Option<Header>, marker: Option<Header>) {
        match marker {
            // Nothing of this generation was deleted when the object was absent.
            None => self.accept(seen),
            Some(_) => {
                self.replan();
                if self.trouble.is_none() {
                    self.begin_generation(marker);
                }
            }
        }
    }

    fn accept(&mut self, seen: Option<Header>) {
        let Some(seal) = seen else { return self.stage = Stage::Done };
        if seal.fork > seal.start {
            return self.damaged(self.at.key(self.generation));
        }
        let from = Point { lsn: seal.fork, chain: genesis(&seal) };
        self.seals.push(seal);
        self.generation += 1;
        self.earlier = self.pieces.len();
        (self.from, self.at, self.used) = (from, from, from.lsn);
        if self.pieces.is_empty() {
            self.begin = from.lsn;
        }
        let is_there = self.stop_at == Some(self.generation);
        self.stage = if is_there { Stage::Done } else { Stage::Marker };
    }

    fn damaged(&mut self, key: Key) {
        self.fail(Trouble::Damaged(key.to_string()));
    }

    fn fail(&mut self, trouble: Trouble) {
        self.trouble = Some(trouble);
        self.stage = Stage::Done;
    }

    /// The pieces without what later generations cut off.
    fn planned(self) -> Plan {
        let mut pieces = Vec::new();
        let mut begin = self.at.lsn;
        let fork_behind = |generation: u32| {
            let later = self.seals.iter().filter(|seal| seal.generation >= generation);
            later.map(|seal| seal.fork).min().unwrap_or(u64::MAX)
        };
        for piece in self.pieces.iter().rev() {
            let until = piece.until.min(fork_behind(piece.header.generation));
            if piece.header.start >= until {
                continue;
            }
            if until != begin {
                break;
            }
            begin = piece.header.start;
            pieces.push(Piece { until, ..*piece });
        }
        pieces.reverse();
        let Reader { at, generation, seals, .. } = self;
        Plan { pieces, begin, end: at, generation, seals }
    }
}

/// The chain before the first position of the generation behind a seal.
pub(super) fn genesis(seal: &Header) -> Hash {
    hash(&seal.encode())
}

fn end_of(marker: Header) -> Point {
    Point { lsn: marker.start, chain: marker.before }
}

fn start_of(key: &Key) -> u64 {
    match *key {
        Key::Merged { start, .. } => start,
        _ => 0,
    }
}

fn merged_of(generation: u32, names: Vec<Key>) -> Vec<Key> {
    let is_own = |key: &Key| matches!(key, Key::Merged { .. }) && key.generation() == generation;
    let mut own: Vec<Key> = names.into_iter().filter(is_own).collect();
    own.sort_unstable();
    own
}
