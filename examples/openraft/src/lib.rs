//! The log store of [openraft](openraft) on a Vellum log.
//!
//! The store itself is that of the example `raft_log` of the crate `vellum`. This crate has it
//! implement [`RaftLogStorage`], and runs openraft's test suite on it.

use std::fmt::Debug;
use std::io;
use std::ops::{Bound, RangeBounds};
use std::path::Path;
use std::sync::Arc;

use openraft::storage::{LogFlushed, RaftLogStorage};
use openraft::{
    CommittedLeaderId, Entry, EntryPayload, LogState, RaftLogReader, RaftTypeConfig, StorageError,
    StorageIOError,
};
use vellum::Options;

#[path = "../../../crates/vellum/examples/raft_log/store.rs"]
mod store;

use store::RaftLog;

type NodeId = u64;
type LogId = openraft::LogId<NodeId>;
type Vote = openraft::Vote<NodeId>;
type Result<T> = std::result::Result<T, StorageError<NodeId>>;

/// The log of one node. A clone is the same log.
#[derive(Clone)]
pub struct LogStore {
    log: Arc<RaftLog>,
}

impl LogStore {
    /// Opens the log in the directory `dir`, which is created if it is not there.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) while another process, or another store of this
    /// one, has it open; [`InvalidData`](io::ErrorKind::InvalidData) for something else than the
    /// log of a node; otherwise as for [`Options::open`].
    pub fn open(dir: impl AsRef<Path>) -> io::Result<LogStore> {
        Ok(LogStore { log: Arc::new(RaftLog::open(dir.as_ref(), &Options::wal())?) })
    }

    /// Runs what waits for the device in a thread that may wait.
    async fn wait<T: Send + 'static>(
        &self,
        call: impl FnOnce(&RaftLog) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let log = Arc::clone(&self.log);
        tokio::task::spawn_blocking(move || call(&log)).await.map_err(io::Error::other)?
    }
}

impl<C> RaftLogReader<C> for LogStore
where
    C: RaftTypeConfig<NodeId = NodeId, Entry = Entry<C>>,
{
    async fn try_get_log_entries<R: RangeBounds<u64> + Clone + Debug + Send>(
        &mut self,
        indexes: R,
    ) -> Result<Vec<C::Entry>> {
        let start = match indexes.start_bound() {
            Bound::Included(start) => *start,
            Bound::Excluded(start) => start + 1,
            Bound::Unbounded => 0,
        };
        let end = match indexes.end_bound() {
            Bound::Included(end) => end + 1,
            Bound::Excluded(end) => *end,
            Bound::Unbounded => u64::MAX,
        };
        let entries =
            self.log.read(start..end).map_err(|error| StorageIOError::read_logs(&error))?;
        Ok(entries
            .into_iter()
            .map(entry_from_stored)
            .collect::<io::Result<_>>()
            .map_err(|error| StorageIOError::read_logs(&error))?)
    }
}

impl<C> RaftLogStorage<C> for LogStore
where
    C: RaftTypeConfig<NodeId = NodeId, Entry = Entry<C>>,
{
    type LogReader = LogStore;

    async fn get_log_state(&mut self) -> Result<LogState<C>> {
        let last_purged_log_id = self.log.state().purged.map(id_from_stored);
        let last_log_id = self.log.last().map(id_from_stored);
        Ok(LogState { last_purged_log_id, last_log_id })
    }

    async fn get_log_reader(&mut self) -> LogStore {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote) -> Result<()> {
        let vote = store::Vote {
            term: vote.leader_id.term,
            candidate: vote.leader_id.node_id,
            is_granted: vote.committed,
        };
        let saved = self.wait(move |log| log.save_vote(vote)).await;
        Ok(saved.map_err(|error| StorageIOError::write_vote(&error))?)
    }

    async fn read_vote(&mut self) -> Result<Option<Vote>> {
        let vote = self.log.state().vote;
        Ok(vote.map(|store::Vote { term, candidate, is_granted }| match is_granted {
            true => Vote::new_committed(term, candidate),
            false => Vote::new(term, candidate),
        }))
    }

    async fn save_committed(&mut self, committed: Option<LogId>) -> Result<()> {
        let saved = self.log.save_committed(committed.map(id_to_stored));
        Ok(saved.map(drop).map_err(|error| StorageIOError::write(&error))?)
    }

    async fn read_committed(&mut self) -> Result<Option<LogId>> {
        Ok(self.log.state().committed.map(id_from_stored))
    }

    /// The entries can be read when this returns; `flushed` is called when they are durable.
    async fn append<I>(&mut self, entries: I, flushed: LogFlushed<C>) -> Result<()>
    where
        I: IntoIterator<Item = C::Entry> + Send,
        I::IntoIter: Send,
    {
        let append = || {
            let entries = entries.into_iter().map(|entry| entry_to_stored(&entry));
            self.log.append(&entries.collect::<io::Result<Vec<_>>>()?)
        };
        let lsn = append().map_err(|error| StorageIOError::write_logs(&error))?;
        let log = Arc::clone(&self.log);
        tokio::task::spawn_blocking(move || flushed.log_io_completed(log.commit(lsn)));
        Ok(())
    }

    async fn truncate(&mut self, from: LogId) -> Result<()> {
        let truncated = self.log.truncate(from.index);
        Ok(truncated.map(drop).map_err(|error| StorageIOError::write_logs(&error))?)
    }

    async fn purge(&mut self, upto: LogId) -> Result<()> {
        let upto = id_to_stored(upto);
        let purged = self.wait(move |log| log.purge(upto)).await;
        Ok(purged.map_err(|error| StorageIOError::write_logs(&error))?)
    }
}

fn id_to_stored(id: LogId) -> store::LogId {
    store::LogId { term: id.leader_id.term, leader: id.leader_id.node_id, index: id.index }
}

fn id_from_stored(store::LogId { term, leader, index }: store::LogId) -> LogId {
    LogId::new(CommittedLeaderId::new(term, leader), index)
}

fn entry_to_stored<C>(entry: &Entry<C>) -> io::Result<store::Entry>
where
    C: RaftTypeConfig<NodeId = NodeId>,
{
    let payload = serde_json::to_vec(&entry.payload)?;
    Ok(store::Entry { id: id_to_stored(entry.log_id), payload })
}

fn entry_from_stored<C>(entry: store::Entry) -> io::Result<Entry<C>>
where
    C: RaftTypeConfig<NodeId = NodeId>,
{
    let payload: EntryPayload<C> = serde_json::from_slice(&entry.payload)?;
    Ok(Entry { log_id: id_from_stored(entry.id), payload })
}
