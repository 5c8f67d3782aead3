//! A modelled store. One position is one cell, which holds one letter.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::decide::reader::{Plan, Reader, Trouble};
use crate::decide::rules::{Broken, breaks};
use crate::decide::{Answer, Ask, Point};
use crate::object::{Hash, Header, Key, Kind, Mark};

/// The content of a cell of a gap.
pub(super) const LOST: u8 = b'-';

/// The chain before the first cell.
pub(super) const ORIGIN: Point = Point { lsn: 0, chain: Hash([7; 32]) };

/// The stored content of a chunk is its letters.
pub(super) fn content(letters: &[u8]) -> Hash {
    let mut out = [0; 32];
    out[..letters.len()].copy_from_slice(letters);
    Hash(out)
}

pub(super) fn letters(header: &Header) -> Vec<u8> {
    let len = (header.end - header.start) as usize;
    match header.kind {
        Kind::Gap => vec![LOST; len],
        _ => header.content.0[..len].to_vec(),
    }
}

pub(super) fn cells_of(plan: &Plan) -> BTreeMap<u64, u8> {
    let cells = |piece: &crate::decide::Piece| {
        let until = piece.until;
        let all = (piece.header.start..).zip(letters(&piece.header));
        all.filter(move |(at, _)| *at < until).collect::<Vec<_>>()
    };
    plan.pieces.iter().flat_map(cells).collect()
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Object {
    pub(super) header: Header,
    pub(super) marks: Vec<Mark>,
    /// The log of its maker up to its end, when it was sent.
    pub(super) log: Vec<u8>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Store(Rc<BTreeMap<Key, Rc<Object>>>);

impl Store {
    /// Whether nothing has happened since one was made from the other.
    pub(super) fn is_untouched(&self, other: &Store) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }

    pub(super) fn create(&mut self, object: Object) -> bool {
        let key = named(object.header.key().expect("objects of a generation have names"));
        if self.0.contains_key(&key) && !breaks(Broken::UnconditionalPut) {
            return false;
        }
        Rc::make_mut(&mut self.0).insert(key, Rc::new(object));
        true
    }

    pub(super) fn delete(&mut self, key: &Key) {
        if self.0.contains_key(key) {
            Rc::make_mut(&mut self.0).remove(key);
        }
    }

    pub(super) fn get(&self, key: &Key) -> Option<&Object> {
        self.0.get(&named(*key)).map(Rc::as_ref)
    }

    pub(super) fn names(&self) -> Vec<Key> {
        self.0.keys().copied().collect()
    }

    /// The answer to a request that changes nothing.
    pub(super) fn answer(&self, ask: &Ask) -> Answer {
        match ask {
            Ask::List(generation) => Answer::Listed(self.list(*generation)),
            Ask::Look(key) => Answer::Saw(self.get(key).map(|object| object.header)),
            Ask::Marks(key) => {
                Answer::Marks(self.get(key).map(|object| (object.header, object.marks.clone())))
            }
            ask => unreachable!("{ask:?} is not for a reader"),
        }
    }

    fn list(&self, generation: u32) -> Vec<Key> {
        let is_wanted = |key: &&Key| match key {
            Key::Merged { .. } => true,
            _ => breaks(Broken::StrayIsEvidence),
        };
        let own = self.0.keys().filter(|key| key.generation() == generation);
        own.filter(is_wanted).copied().collect()
    }

    /// The plan of a restore at this moment.
    pub(super) fn read(&self) -> Result<Plan, Trouble> {
        let mut reader = Reader::new(0, ORIGIN);
        while let Some(ask) = reader.ask() {
            reader.answer(self.answer(&ask));
        }
        reader.plan()
    }
}

fn named(key: Key) -> Key {
    match key {
        Key::Link { generation, start, .. } if breaks(Broken::KeyWithoutChain) => {
            Key::Link { generation, start, chain: 0 }
        }
        key => key,
    }
}
