//! Taking a log over: a seal at the place where the owner's next object would be.

use super::reader::{Plan, Reader, Trouble, genesis};
use super::rules::{Broken, breaks};
use super::{Answer, Ask, Point, Saved};
use crate::object::{Hash, Header, Key, Kind, Link};

/// Stored durably before the first seal is created, so that a restart knows its own seals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Intent {
    /// A number that was never used.
    pub nonce: u128,
    /// The position at which the new generation begins; absent: where the old one ends.
    pub fork: Option<u64>,
    /// The generation that is ended; absent: whichever is the newest.
    pub only: Option<u32>,
    /// Nothing is cut off: the old generation must end at `fork`, or nothing is sealed.
    pub is_exact: bool,
}

impl Intent {
    /// Takes over from the owner of a generation, up to whose position `end` the claimant's log was
    /// compared with the store. Chunks that arrive behind that are cut off, and a later generation
    /// is left alone: this log may not have the records of either.
    pub fn take_over(nonce: u128, generation: u32, end: u64) -> Intent {
        let fork = (!breaks(Broken::ForkAnywhere)).then_some(end);
        let only = (!breaks(Broken::TakeAnyGeneration)).then_some(generation);
        Intent { nonce, fork, only, is_exact: false }
    }

    /// The owner's log was cut below what it has shipped.
    pub fn go_back(nonce: u128, generation: u32, fork: u64) -> Intent {
        Intent { nonce, fork: Some(fork), only: Some(generation), is_exact: false }
    }

    /// The owner, which has shipped up to `end`, begins its next generation there. If something
    /// else has landed behind that, nothing is sealed: perhaps a copy ships too.
    pub fn rotate(nonce: u128, generation: u32, end: u64) -> Intent {
        let is_exact = !breaks(Broken::RotateAnywhere);
        Intent { nonce, fork: is_exact.then_some(end), only: Some(generation), is_exact }
    }
}

/// The result of a claim.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Claimed {
    /// The log is the claimant's.
    Won {
        /// Where to ship.
        saved: Saved,
        /// The end of the generation before.
        ended: Point,
    },
    /// Another one has it.
    Lost,
    /// The generation does not end where the claimant may continue. The claimant still owns it, and
    /// first reads its chunks.
    Moved,
    /// The objects do not make sense.
    Failed(Trouble),
}

#[allow(clippy::large_enum_variant, reason = "there are few of them at a time")]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Stage {
    Read(Reader),
    Seal(Header),
    Look(Header),
    Check(Header),
    Done(Claimed),
}

/// Ends the newest generation and begins the next.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Claim {
    intent: Intent,
    generation: u32,
    from: Point,
    stage: Stage,
}

impl Claim {
    /// Claims a log whose chain is known from a point on: its very begin, or where the own
    /// generation began.
    pub fn new(intent: Intent, generation: u32, from: Point) -> Claim {
        let stage = Stage::Read(Reader::end_only(generation, from));
        let mut claim = Claim { intent, generation, from, stage };
        claim.settle();
        claim
    }

    /// The next request; nothing when it is done.
    pub fn ask(&self) -> Option<Ask> {
        match &self.stage {
            Stage::Read(reader) => reader.ask(),
            Stage::Seal(seal) => Some(Ask::Create(*seal)),
            Stage::Look(seal) => seal.key().map(Ask::Look),
            Stage::Check(seal) => Some(Ask::Look(Key::Closed(seal.generation))),
            Stage::Done(_) => None,
        }
    }

    /// The result, when there is nothing more to ask.
    pub fn outcome(self) -> Option<Claimed> {
        match self.stage {
            Stage::Done(claimed) => Some(claimed),
            _ => None,
        }
    }

    /// Takes what came of the last ask.
    pub fn answer(&mut self, answer: Answer) {
        if let Stage::Read(reader) = &mut self.stage {
            reader.answer(answer);
            return self.settle();
        }
        match (self.stage.clone(), answer) {
            (Stage::Seal(seal), Answer::Created(_)) => self.stage = Stage::Look(seal),
            (Stage::Look(_), Answer::Saw(Some(seen))) if self.is_own(&seen) => {
                match breaks(Broken::NoCheckAfterClaim) {
                    true => self.win(seen),
                    false => self.stage = Stage::Check(seen),
                }
            }
            (Stage::Look(_), Answer::Saw(Some(seen))) if seen.kind == Kind::Seal => self.lose(),
            // A chunk was faster, or the chunk that was there is gone.
            (Stage::Look(_), Answer::Saw(_)) => self.read_again(),
            (Stage::Check(seal), Answer::Saw(None)) => self.win(seal),
            // The seal is in the past of a generation that ended elsewhere.
            (Stage::Check(_), Answer::Saw(Some(_))) => self.read_again(),
            (stage, answer) => unreachable!("{stage:?} was answered by {answer:?}"),
        }
        self.settle();
    }

    fn is_own(&self, seen: &Header) -> bool {
        let fork = self.intent.fork.unwrap_or(seen.start).min(seen.start);
        seen.kind == Kind::Seal && seen.nonce == self.intent.nonce && seen.fork == fork
    }

    fn read_again(&mut self) {
        self.stage = Stage::Read(Reader::end_only(self.generation, self.from));
    }

    fn win(&mut self, seal: Header) {
        let point = Point { lsn: seal.fork, chain: genesis(&seal) };
        let saved = Saved {
            generation: seal.generation + 1,
            nonce: self.intent.nonce,
            point,
            flights: Vec::new(),
        };
        let ended = Point { lsn: seal.start, chain: seal.before };
        self.stage = Stage::Done(Claimed::Won { saved, ended });
    }

    fn lose(&mut self) {
        self.stage = Stage::Done(Claimed::Lost);
    }

    /// Decides when reading has come to its end.
    fn settle(&mut self) {
        let Stage::Read(reader) = &self.stage else { return };
        if reader.ask().is_some() {
            return;
        }
        match reader.clone().plan() {
            Ok(plan) => self.planned(&plan),
            Err(trouble) => self.stage = Stage::Done(Claimed::Failed(trouble)),
        }
    }

    fn planned(&mut self, plan: &Plan) {
        let own = plan.seals.iter().find(|seal| self.is_own(seal));
        match own {
            Some(seal) if seal.generation + 1 == plan.generation => self.win(*seal),
            Some(_) => self.lose(),
            None if self.intent.only.is_some_and(|only| only != plan.generation) => self.lose(),
            None if self.is_elsewhere(plan.end) => self.stage = Stage::Done(Claimed::Moved),
            None => self.stage = Stage::Seal(self.seal(plan)),
        }
    }

    fn is_elsewhere(&self, end: Point) -> bool {
        self.intent.is_exact && self.intent.fork != Some(end.lsn)
    }

    fn seal(&self, plan: &Plan) -> Header {
        let Point { lsn, chain } = plan.end;
        let link = Link { start: lsn, end: lsn, file: None, content: Hash::default() };
        Header {
            nonce: self.intent.nonce,
            fork: self.intent.fork.unwrap_or(lsn).min(lsn),
            after: Hash::default(),
            ..Header::draft(Kind::Seal, plan.generation, chain, link)
        }
    }
}
