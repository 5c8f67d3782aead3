//! Where a restarted shipper continues.
//!
//! The stored position may be older than the merged objects, if its file came from a backup. Then
//! the chunks behind it may be gone, and the next one must not be created again. A merged object
//! proves that its range was acknowledged; a chunk does not, because it may never have been on the
//! chain.

use super::owner::{Saved, Stop};
use super::rules::{Broken, breaks};
use super::{Answer, Ask, Point};
use crate::object::{Header, Key, Mark};

/// Where to continue.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Resumed {
    /// Here.
    At(Saved),
    /// Nowhere.
    Stopped(Stop),
}

#[allow(clippy::large_enum_variant, reason = "there are few of them at a time")]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Stage {
    List,
    Marks(Key),
    /// Each mark behind the position is compared with the local log.
    Compare(Header, Vec<Mark>),
    Check,
    Done(Option<Stop>),
}

/// Finds where to continue. It walks over merged objects only; [`super::Owner`] walks over chunks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Resume {
    saved: Saved,
    stage: Stage,
    /// The merged objects that end behind the position, the oldest last.
    later: Vec<Key>,
}

impl Resume {
    /// Begins at the stored state.
    pub fn new(saved: Saved) -> Resume {
        let stage = if breaks(Broken::NoResync) { Stage::Done(None) } else { Stage::List };
        Resume { saved, stage, later: Vec::new() }
    }

    /// The next request; nothing when it is done.
    pub fn ask(&self) -> Option<Ask> {
        Some(match &self.stage {
            Stage::List => Ask::List(self.saved.generation),
            Stage::Marks(key) => Ask::Marks(*key),
            Stage::Compare(_, marks) => {
                Ask::Local { start: self.saved.point.lsn, end: marks.first()?.end }
            }
            Stage::Check => Ask::Look(Key::Closed(self.saved.generation)),
            Stage::Done(_) => return None,
        })
    }

    /// The result, when there is nothing more to ask.
    pub fn outcome(self) -> Resumed {
        match self.stage {
            Stage::Done(Some(stop)) => Resumed::Stopped(stop),
            _ => Resumed::At(self.saved),
        }
    }

    /// Takes what came of the last ask.
    pub fn answer(&mut self, answer: Answer) {
        let stage = std::mem::replace(&mut self.stage, Stage::Done(None));
        match (stage, answer) {
            (Stage::List, Answer::Listed(names)) => self.listed(names),
            (Stage::Marks(_), Answer::Marks(Some((header, marks)))) => self.begin(header, marks),
            // Merged objects of an open generation are not deleted.
            (Stage::Marks(_), Answer::Marks(None)) => self.fence(),
            (Stage::Compare(header, marks), Answer::Local(local)) => {
                let after = local.map(|local| local.after(self.saved.point.chain));
                match marks.first().filter(|mark| Some(mark.after) == after) {
                    Some(mark) => self.pass(*mark, header, marks[1..].to_vec()),
                    None => self.diverge(),
                }
            }
            (Stage::Check, Answer::Saw(None)) => self.stage = Stage::Done(None),
            (Stage::Check, Answer::Saw(Some(_))) => self.fence(),
            (stage, answer) => unreachable!("{stage:?} was answered by {answer:?}"),
        }
    }

    fn listed(&mut self, names: Vec<Key>) {
        let at = self.saved.point.lsn;
        let is_stray = |key: &Key| matches!(*key, Key::Link { start, .. } if start > at);
        if breaks(Broken::StrayIsEvidence) && names.iter().any(is_stray) {
            return self.diverge();
        }
        let is_later = |key: &Key| matches!(*key, Key::Merged { end, .. } if end > at);
        self.later = names.into_iter().filter(is_later).collect();
        self.later.sort_unstable_by(|a, b| b.cmp(a));
        match self.later.pop() {
            Some(key) => self.stage = Stage::Marks(key),
            None => self.stage = Stage::Done(None),
        }
    }

    fn begin(&mut self, header: Header, marks: Vec<Mark>) {
        let at = self.saved.point;
        // Chunks are between: they are walked over, one after the other.
        if header.start > at.lsn {
            return self.stage = Stage::Check;
        }
        let starts_here = header.start == at.lsn && header.before == at.chain;
        let passed = marks.iter().position(|mark| mark.end == at.lsn && mark.after == at.chain);
        match (starts_here, passed) {
            (true, _) => self.stage = Stage::Compare(header, marks),
            (_, Some(index)) => {
                self.stage = Stage::Compare(header, marks[index + 1..].to_vec());
            }
            _ => self.diverge(),
        }
    }

    fn pass(&mut self, mark: Mark, header: Header, rest: Vec<Mark>) {
        self.saved.point = Point { lsn: mark.end, chain: mark.after };
        let at = mark.end;
        self.saved.flights.retain(|flight| flight.link.start >= at);
        self.stage = match (rest.is_empty(), self.later.pop()) {
            (false, key) => {
                self.later.extend(key);
                Stage::Compare(header, rest)
            }
            (true, Some(key)) => Stage::Marks(key),
            (true, None) => Stage::Check,
        };
    }

    fn fence(&mut self) {
        self.stage = Stage::Done(Some(Stop::Fenced { at: self.saved.point.lsn }));
    }

    fn diverge(&mut self) {
        self.stage = Stage::Done(Some(Stop::Diverged { at: self.saved.point.lsn }));
    }
}
