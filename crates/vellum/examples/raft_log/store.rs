//! The log of a Raft node on a write-ahead log: entries, vote, truncation of the tail, compaction.
//!
//! Truncated entries stay in the file: a record says so, or an entry with an index that is there
//! already takes its place and that of all behind it. Recovery reads the records in their order and
//! ends with the same entries. So a truncation costs no sync of its own, and an entry can never be
//! durable without the truncation before it. The reasons are in
//! `docs/decisions/0020-raft-suffixes.md`.
//!
//! | record | bytes |
//! |---|---|
//! | entry | 0, its id (24 bytes), its payload |
//! | truncation | 1, the first index that goes (8 bytes) |
//! | state | 2, vote, last purged id, committed id; each 0, or 1 and its numbers |

use std::collections::VecDeque;
use std::io::{Error, ErrorKind, Result};
use std::ops::Range;
use std::path::Path;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use vellum::{Log, Lsn, Options};

/// Which entry: the term of its leader, the leader, the index. Implementations that have one leader
/// for each term leave `leader` at 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogId {
    pub(crate) term: u64,
    pub(crate) leader: u64,
    pub(crate) index: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) id: LogId,
    pub(crate) payload: Vec<u8>,
}

/// The term that the node is in, its vote, and whether a majority did, for implementations that
/// store that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Vote {
    pub(crate) term: u64,
    pub(crate) candidate: u64,
    pub(crate) is_granted: bool,
}

/// The node's state beside its entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) vote: Option<Vote>,
    /// The newest entry that was compacted away.
    pub(crate) purged: Option<LogId>,
    pub(crate) committed: Option<LogId>,
}

/// A Raft log in a directory, for one process at a time and any number of its threads.
pub(crate) struct RaftLog {
    log: Log,
    index: RwLock<Index>,
}

/// Where the entries are: one after the other, without a gap.
#[derive(Default)]
struct Index {
    state: State,
    entries: VecDeque<(LogId, Lsn)>,
}

enum Record<'a> {
    Entry(LogId, &'a [u8]),
    Truncation(u64),
    State(State),
}

impl RaftLog {
    /// Opens the log in `dir`, which is created if it is not there.
    pub(crate) fn open(dir: &Path, options: &Options) -> Result<RaftLog> {
        std::fs::create_dir_all(dir)?;
        let log = options.open(dir.join("log"))?;
        if log.stat()?.lost.is_some_and(|(_, end)| end > log.begin()) {
            let message = "records of the log were lost, and the vote may be among them: remove the \
                           node's directory, and have it join as a new node";
            return Err(Error::other(message));
        }
        let index = recover(&log)?;
        // A killed process may have left records that are not durable. The node is going to tell
        // others of them.
        log.sync()?;
        Ok(RaftLog { log, index: RwLock::new(index) })
    }

    /// Appends entries; entries from the index of the first on are replaced. Entries up to the one
    /// that was purged last are left out: the snapshot has them.
    ///
    /// They can be read at once, and are durable when [`commit`](RaftLog::commit) of the position
    /// that is returned has returned.
    pub(crate) fn append(&self, entries: &[Entry]) -> Result<Lsn> {
        let mut index = self.write();
        let mut last = Lsn::ZERO;
        for Entry { id, payload } in entries {
            if index.is_purged(id.index) {
                continue;
            }
            index.check_follows(*id)?;
            last = self.log.append(&Record::Entry(*id, payload).to_bytes())?;
            index.put(*id, last);
        }
        Ok(last)
    }

    /// Makes the record at `lsn` durable, and all that was done before it.
    pub(crate) fn commit(&self, lsn: Lsn) -> Result<()> {
        Ok(self.log.commit(lsn)?)
    }

    /// Drops the entries from index `from` on. Durable with the next record that is committed.
    pub(crate) fn truncate(&self, from: u64) -> Result<Lsn> {
        let mut index = self.write();
        let lsn = self.log.append(&Record::Truncation(from).to_bytes())?;
        index.truncate(from);
        Ok(lsn)
    }

    /// Drops the entries up to `upto`, durably, and gives the space back.
    ///
    /// `upto` may be behind the last entry, after a snapshot of the leader was installed.
    pub(crate) fn purge(&self, upto: LogId) -> Result<()> {
        let (lsn, oldest) = {
            let mut index = self.write();
            if index.is_purged(upto.index) {
                return Ok(());
            }
            let state = State { purged: Some(upto), ..index.state };
            let lsn = self.put_state(&mut index, state)?;
            (lsn, index.entries.front().map_or(lsn, |(_, lsn)| *lsn))
        };
        // First: vote and purged id are behind `oldest` now, and nothing else before it counts.
        self.log.commit(lsn)?;
        self.log.trim(oldest)?;
        Ok(())
    }

    /// Stores the vote, durably.
    pub(crate) fn save_vote(&self, vote: Vote) -> Result<()> {
        let lsn = {
            let mut index = self.write();
            let state = State { vote: Some(vote), ..index.state };
            self.put_state(&mut index, state)?
        };
        self.commit(lsn)
    }

    /// Stores what is committed. Durable with the next record that is committed, because a node may
    /// forget this.
    pub(crate) fn save_committed(&self, committed: Option<LogId>) -> Result<Lsn> {
        let mut index = self.write();
        let state = State { committed, ..index.state };
        self.put_state(&mut index, state)
    }

    pub(crate) fn state(&self) -> State {
        self.read_index().state
    }

    /// The newest entry, or the one that was purged last if there is none.
    pub(crate) fn last(&self) -> Option<LogId> {
        self.read_index().last()
    }

    /// The entries with these indexes, as far as they are there.
    pub(crate) fn read(&self, indexes: Range<u64>) -> Result<Vec<Entry>> {
        // Locked to the end: the entries cannot be trimmed meanwhile.
        let index = self.read_index();
        let wanted = index.places(indexes);
        let Some((_, first)) = index.entries.range(wanted.clone()).next() else {
            return Ok(Vec::new());
        };
        let mut reader = self.log.reader(*first)?;
        let mut entries = Vec::with_capacity(wanted.len());
        for (id, lsn) in index.entries.range(wanted) {
            // Between two entries there may be others that were truncated.
            let payload = loop {
                let record = reader.next()?.ok_or_else(|| damaged("an entry is gone"))?;
                if record.lsn == *lsn {
                    break Record::from_bytes(record.payload)?.payload().to_vec();
                }
            };
            entries.push(Entry { id: *id, payload });
        }
        Ok(entries)
    }

    fn put_state(&self, index: &mut Index, state: State) -> Result<Lsn> {
        let lsn = self.log.append(&Record::State(state).to_bytes())?;
        index.set_state(state);
        Ok(lsn)
    }

    fn read_index(&self) -> RwLockReadGuard<'_, Index> {
        self.index.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Index> {
        self.index.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The index of the log: each record in its order.
fn recover(log: &Log) -> Result<Index> {
    let mut index = Index::default();
    let mut reader = log.reader(Lsn::ZERO)?;
    while let Some(record) = reader.next()? {
        match Record::from_bytes(record.payload)? {
            Record::Entry(id, _) => {
                index.check_follows(id)?;
                index.put(id, record.lsn);
            }
            Record::Truncation(from) => index.truncate(from),
            Record::State(state) => index.set_state(state),
        }
    }
    let first = index.entries.front().map(|(id, _)| id.index);
    match index.state.purged.zip(first) {
        Some((purged, first)) if first != purged.index + 1 => {
            Err(damaged("entries are missing behind those that were purged"))
        }
        _ => Ok(index),
    }
}

impl Index {
    fn last(&self) -> Option<LogId> {
        self.entries.back().map(|(id, _)| *id).or(self.state.purged)
    }

    fn is_purged(&self, index: u64) -> bool {
        self.state.purged.is_some_and(|purged| index <= purged.index)
    }

    /// Refuses an entry that would leave a gap.
    fn check_follows(&self, id: LogId) -> Result<()> {
        match self.last() {
            Some(last) if id.index > last.index + 1 => {
                let message = format!("entry {} does not follow {}", id.index, last.index);
                Err(Error::new(ErrorKind::InvalidInput, message))
            }
            _ => Ok(()),
        }
    }

    /// Where in `entries` those with these indexes are.
    fn places(&self, indexes: Range<u64>) -> Range<usize> {
        let place = |index| self.entries.partition_point(|(id, _)| id.index < index);
        let start = place(indexes.start);
        start..place(indexes.end).max(start)
    }

    fn put(&mut self, id: LogId, lsn: Lsn) {
        self.truncate(id.index);
        self.entries.push_back((id, lsn));
    }

    fn truncate(&mut self, from: u64) {
        self.entries.truncate(self.places(0..from).end);
    }

    fn set_state(&mut self, state: State) {
        self.state = state;
        if let Some(purged) = state.purged {
            self.entries.drain(self.places(0..purged.index + 1));
        }
    }
}

impl<'a> Record<'a> {
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self {
            Record::Entry(id, payload) => {
                bytes.push(0);
                put_numbers(&mut bytes, &id.numbers());
                bytes.extend_from_slice(payload);
            }
            Record::Truncation(from) => {
                bytes.push(1);
                put_numbers(&mut bytes, &[*from]);
            }
            Record::State(State { vote, purged, committed }) => {
                bytes.push(2);
                put_optional(&mut bytes, vote.map(Vote::numbers));
                put_optional(&mut bytes, purged.map(|id| id.numbers()));
                put_optional(&mut bytes, committed.map(|id| id.numbers()));
            }
        }
        bytes
    }

    fn from_bytes(bytes: &'a [u8]) -> Result<Record<'a>> {
        Record::parse(bytes).ok_or_else(|| damaged("a record is not of a Raft log"))
    }

    fn parse(mut bytes: &'a [u8]) -> Option<Record<'a>> {
        let bytes = &mut bytes;
        Some(match bytes.split_off_first()? {
            0 => Record::Entry(LogId::from(take_numbers(bytes)?), bytes),
            1 => Record::Truncation(take_numbers::<1>(bytes)?[0]),
            2 => Record::State(State {
                vote: take_optional(bytes)?.map(Vote::from),
                purged: take_optional(bytes)?.map(LogId::from),
                committed: take_optional(bytes)?.map(LogId::from),
            }),
            _ => return None,
        })
    }

    fn payload(&self) -> &'a [u8] {
        match self {
            Record::Entry(_, payload) => payload,
            _ => &[],
        }
    }
}

impl LogId {
    fn numbers(self) -> [u64; 3] {
        [self.term, self.leader, self.index]
    }
}

impl From<[u64; 3]> for LogId {
    fn from([term, leader, index]: [u64; 3]) -> LogId {
        LogId { term, leader, index }
    }
}

impl Vote {
    fn numbers(self) -> [u64; 3] {
        [self.term, self.candidate, self.is_granted.into()]
    }
}

impl From<[u64; 3]> for Vote {
    fn from([term, candidate, is_granted]: [u64; 3]) -> Vote {
        Vote { term, candidate, is_granted: is_granted != 0 }
    }
}

fn put_numbers(bytes: &mut Vec<u8>, numbers: &[u64]) {
    bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
}

fn put_optional(bytes: &mut Vec<u8>, numbers: Option<[u64; 3]>) {
    bytes.push(numbers.is_some().into());
    put_numbers(bytes, numbers.as_ref().map_or(&[], |numbers| numbers));
}

fn take_numbers<const COUNT: usize>(bytes: &mut &[u8]) -> Option<[u64; COUNT]> {
    let mut numbers = [0; COUNT];
    for number in &mut numbers {
        let (head, rest) = bytes.split_first_chunk()?;
        *number = u64::from_le_bytes(*head);
        *bytes = rest;
    }
    Some(numbers)
}

/// The outer `None` is damage.
#[expect(clippy::option_option, reason = "a value that is not there is no damage")]
fn take_optional(bytes: &mut &[u8]) -> Option<Option<[u64; 3]>> {
    match bytes.split_off_first()? {
        0 => Some(None),
        1 => take_numbers(bytes).map(Some),
        _ => None,
    }
}

fn damaged(what: &str) -> Error {
    Error::new(ErrorKind::InvalidData, what)
}
