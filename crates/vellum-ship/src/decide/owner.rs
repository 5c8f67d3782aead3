//! Shipping: chunks in flight, adopting chunks that exist, and the acknowledged end.

use std::collections::VecDeque;

use super::rules::{Broken, breaks};
use super::{Answer, Ask, Point};
use crate::object::{Hash, Header, Key, Kind, Link};

/// A chunk that was about to be created, stored before its create was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Flight {
    /// Its link of the chain.
    pub link: Link,
}

/// The state that a shipper needs after a crash.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Saved {
    /// The generation that it owns.
    pub generation: u32,
    /// Its number.
    pub nonce: u128,
    /// The end of the acknowledged part.
    pub point: Point,
    /// Chunks that may be in flight behind that.
    pub flights: Vec<Flight>,
}

/// Why an owner ships no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Stop {
    /// Another one has taken the log over.
    #[error("another shipper has taken the log over at {at}")]
    Fenced {
        /// The position from which its objects are not part of the log.
        at: u64,
    },
    /// The store has another history than the local log.
    #[error("the store holds something else than this log at {at}")]
    Diverged {
        /// The first position that differs.
        at: u64,
    },
}

/// Something to be done for the chunk that begins at a point.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Job {
    /// Returned with the answer.
    pub at: Point,
    /// The request.
    pub ask: Ask,
}

#[allow(clippy::large_enum_variant, reason = "there are few of them at a time")]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Stage {
    Save,
    Create,
    /// Exists: looked at when everything before it is acknowledged.
    Taken,
    Look,
    /// Does the local log hold the bytes of this object?
    Compare(Header),
    /// Is the generation still open?
    Check {
        is_adopted: bool,
    },
    Ok,
}

/// One place on the chain that is being filled.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Slot {
    at: Point,
    /// The header of its own chunk; absent while a restart reads the chunk that exists there.
    own: Option<Header>,
    stage: Stage,
    is_asked: bool,
}

impl Slot {
    fn go_to(&mut self, stage: Stage) {
        self.stage = stage;
        self.is_asked = false;
    }

    fn end(&self) -> Option<Point> {
        self.own.map(|own| Point { lsn: own.end, chain: own.after })
    }

    fn ask(&self, generation: u32) -> Option<Ask> {
        match &self.stage {
            Stage::Save => Some(Ask::Save),
            Stage::Create => self.own.map(Ask::Create),
            Stage::Look => Some(Ask::Look(self.at.key(generation))),
            Stage::Compare(seen) => Some(Ask::Local { start: seen.start, end: seen.end }),
            Stage::Check { .. } => Some(Ask::Look(Key::Closed(generation))),
            Stage::Taken | Stage::Ok => None,
        }
    }
}

/// Ships what is durable in one generation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Owner {
    generation: u32,
    nonce: u128,
    shipped: Point,
    slots: VecDeque<Slot>,
    limit: usize,
    /// Present if local bytes may go before they are shipped.
    flights: Option<Vec<Flight>>,
    begin: u64,
    durable: u64,
    stop: Option<Stop>,
}

impl Owner {
    /// Continues at `saved`, with at most `limit` objects in flight. First it walks over the
    /// objects that are there already. `has_gaps`: local bytes may be removed before they are
    /// shipped, so each chunk is recorded before it is sent.
    pub fn new(saved: &Saved, limit: usize, has_gaps: bool) -> Owner {
        let point = saved.point;
        let keeps = has_gaps || !saved.flights.is_empty();
        let slot = Slot { at: point, own: None, stage: Stage::Look, is_asked: false };
        Owner {
            generation: saved.generation,
            nonce: saved.nonce,
            shipped: point,
            slots: VecDeque::from([slot]),
            limit,
            flights: keeps.then(|| saved.flights.clone()),
            begin: 0,
            durable: 0,
            stop: None,
        }
    }

    /// Tells which positions the local log holds durably. To be called before anything is answered,
    /// and whenever that changes.
    pub fn set_local(&mut self, begin: u64, durable: u64) {
        self.begin = begin;
        self.durable = durable;
    }

    /// The generation.
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// The acknowledged end: everything before it is in the store for good.
    pub fn shipped(&self) -> Point {
        self.shipped
    }

    /// Why it ships no more.
    pub fn stop(&self) -> Option<Stop> {
        self.stop
    }

    /// Whether nothing is in flight.
    pub fn is_idle(&self) -> bool {
        self.slots.is_empty()
    }

    /// The state that must be stored before the local log removes anything before
    /// [`Owner::shipped`].
    pub fn saved(&self) -> Saved {
        Saved {
            generation: self.generation,
            nonce: self.nonce,
            point: self.shipped,
            flights: self.flights.clone().unwrap_or_default(),
        }
    }

    /// Where the next chunk begins; absent while it may not begin.
    pub fn next_start(&self) -> Option<u64> {
        self.coming_start().filter(|_| self.slots.len() < self.limit)
    }

    /// Where the next chunk will begin, also while there is no place for it; absent while it is
    /// unknown.
    pub fn coming_start(&self) -> Option<u64> {
        let is_walking = self.slots.iter().any(|slot| slot.own.is_none());
        (!is_walking && self.stop.is_none()).then(|| self.tip().lsn)
    }

    fn tip(&self) -> Point {
        self.slots.back().and_then(Slot::end).unwrap_or(self.shipped)
    }

    /// Begins a chunk at [`Owner::next_start`]. It is durable locally and does not cross the end of
    /// a segment. Returns the point at which it begins.
    pub fn push_chunk(&mut self, link: Link) -> Point {
        debug_assert!(link.end <= self.durable || breaks(Broken::ShipBeyondDurable));
        let is_journaled = match &mut self.flights {
            Some(flights) if !breaks(Broken::NoJournal) => {
                let flight = Flight { link };
                if !flights.contains(&flight) {
                    flights.push(flight);
                }
                true
            }
            _ => false,
        };
        let at = self.tip();
        self.push(Kind::Chunk, link, if is_journaled { Stage::Save } else { Stage::Create });
        at
    }

    /// Begins a gap at [`Owner::next_start`]: the local log begins at `end`.
    pub fn push_gap(&mut self, end: u64) {
        let link = Link { start: self.tip().lsn, end, file: None, content: Hash::default() };
        self.push(Kind::Gap, link, Stage::Create);
    }

    fn push(&mut self, kind: Kind, link: Link, stage: Stage) {
        let at = self.tip();
        let own =
            Header { nonce: self.nonce, ..Header::draft(kind, self.generation, at.chain, link) };
        self.slots.push_back(Slot { at, own: Some(own), stage, is_asked: false });
        if breaks(Broken::AckBeforeReply) {
            self.shipped = self.tip();
        }
    }

    /// The next task that is not begun yet.
    pub fn poll(&mut self) -> Option<Job> {
        if self.stop.is_some() {
            return None;
        }
        self.judge_first();
        let generation = self.generation;
        let slot = self.slots.iter_mut().find(|slot| !slot.is_asked && slot.stage != Stage::Ok)?;
        let slot = match slot.stage {
            Stage::Taken => self
                .slots
                .iter_mut()
                .find(|slot| !slot.is_asked && !matches!(slot.stage, Stage::Ok | Stage::Taken))?,
            _ => slot,
        };
        slot.is_asked = true;
        Some(Job { at: slot.at, ask: slot.ask(generation)? })
    }

    /// Only the first slot is judged: the later slots may not be on the chain.
    fn judge_first(&mut self) {
        let all = breaks(Broken::JudgeOutOfOrder);
        for slot in self.slots.iter_mut().take(if all { usize::MAX } else { 1 }) {
            if slot.stage == Stage::Taken {
                slot.go_to(Stage::Look);
            }
        }
    }

    /// Takes what came of a job. An answer for a slot that was dropped is nothing.
    pub fn answer(&mut self, at: Point, answer: Answer) {
        let slot = self.slots.iter().position(|slot| slot.at == at && slot.is_asked);
        let Some(index) = slot.filter(|_| self.stop.is_none()) else { return };
        match (self.slots[index].stage.clone(), answer) {
            (Stage::Save, Answer::Saved) => self.slots[index].go_to(Stage::Create),
            (Stage::Create, Answer::Created(true)) => self.check(index, false),
            (Stage::Create, Answer::Created(false)) => self.slots[index].go_to(Stage::Taken),
            (Stage::Look, Answer::Saw(seen)) => self.judge(index, seen),
            (Stage::Compare(seen), Answer::Local(local)) => self.compare(index, seen, local),
            (Stage::Check { .. }, Answer::Saw(None)) => self.slots[index].go_to(Stage::Ok),
            (Stage::Check { .. }, Answer::Saw(Some(_))) => self.fence(at.lsn),
            (stage, answer) => unreachable!("{stage:?} was answered by {answer:?}"),
        }
        self.acknowledge();
    }

    fn check(&mut self, index: usize, is_adopted: bool) {
        let is_left_out = match is_adopted {
            true => breaks(Broken::NoCheckAfterAdopt),
            false => breaks(Broken::NoCheckAfterCreate),
        };
        let stage = if is_left_out { Stage::Ok } else { Stage::Check { is_adopted } };
        self.slots[index].go_to(stage);
    }

    fn judge(&mut self, index: usize, seen: Option<Header>) {
        let at = self.slots[index].at;
        let Some(seen) = seen else { return self.absent(index) };
        let own = self.slots[index].own.map(|own| own.link());
        let is_journaled = |link| self.flights.iter().flatten().any(|flight| flight.link == link);
        match seen.kind {
            Kind::Seal => self.fence(at.lsn),
            _ if seen.before != at.chain => self.diverge(at.lsn),
            _ if own == Some(seen.link()) => self.adopt(index, seen),
            Kind::Chunk if is_journaled(seen.link()) => self.adopt(index, seen),
            Kind::Gap if seen.end <= self.begin => self.adopt(index, seen),
            Kind::Chunk if breaks(Broken::NonceDecides) && seen.nonce == self.nonce => {
                self.adopt(index, seen);
            }
            // The files of a gap may be lost in the midst of the local log.
            Kind::Chunk | Kind::Gap if seen.end <= self.durable => {
                self.slots[index].go_to(Stage::Compare(seen));
            }
            _ => self.diverge(at.lsn),
        }
    }

    /// The end of the walk of a restart; or a create that was refused for an object that is gone.
    fn absent(&mut self, index: usize) {
        match self.slots[index].own {
            Some(_) => self.slots[index].go_to(Stage::Create),
            None => drop(self.slots.remove(index)),
        }
    }

    fn compare(&mut self, index: usize, seen: Header, local: Option<Link>) {
        let is_same = match local {
            Some(local) => local == seen.link(),
            None => breaks(Broken::AdoptUnseen),
        };
        match is_same {
            true => self.adopt(index, seen),
            false => self.diverge(seen.start),
        }
    }

    /// Takes an object that has the same bytes for one's own. Its end counts, so what was put
    /// behind another end is no longer on the chain.
    fn adopt(&mut self, index: usize, seen: Header) {
        let is_walking = self.slots[index].own.is_none();
        let is_same = self.slots[index].own.is_some_and(|own| own.after == seen.after);
        if !is_same {
            self.slots.truncate(index + 1);
        }
        self.slots[index].own = Some(seen);
        self.check(index, true);
        if is_walking {
            let at = self.tip();
            self.slots.push_back(Slot { at, own: None, stage: Stage::Look, is_asked: false });
        }
    }

    fn acknowledge(&mut self) {
        while let Some(end) = self.slots.front().filter(|slot| slot.stage == Stage::Ok) {
            self.shipped = end.end().unwrap_or(self.shipped);
            self.slots.pop_front();
        }
        let shipped = self.shipped.lsn;
        if let Some(flights) = &mut self.flights {
            flights.retain(|flight| flight.link.start >= shipped);
        }
    }

    fn fence(&mut self, at: u64) {
        self.stop = Some(Stop::Fenced { at });
    }

    fn diverge(&mut self, at: u64) {
        self.stop = Some(Stop::Diverged { at });
    }
}
