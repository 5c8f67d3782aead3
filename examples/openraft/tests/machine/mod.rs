//! A state machine in memory that counts what is applied to it.

use std::io::Cursor;
use std::sync::{Arc, Mutex, MutexGuard};

use openraft::storage::RaftStateMachine;
use openraft::{
    BasicNode, EntryPayload, LogId, RaftSnapshotBuilder, Snapshot, SnapshotMeta, StorageError,
    StorageIOError, StoredMembership,
};
use serde::{Deserialize, Serialize};

openraft::declare_raft_types!(pub(crate) TypeConfig: D = String, R = ());

type Result<T> = std::result::Result<T, StorageError<u64>>;
type Entry = openraft::Entry<TypeConfig>;
type Meta = SnapshotMeta<u64, BasicNode>;

#[derive(Clone, Default)]
pub(crate) struct Machine {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    state: State,
    snapshot: Option<(Meta, Vec<u8>)>,
    snapshots_made: u64,
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct State {
    applied: Option<LogId<u64>>,
    membership: StoredMembership<u64, BasicNode>,
    count: u64,
}

impl Machine {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap()
    }
}

impl State {
    fn apply(&mut self, entry: Entry) {
        self.applied = Some(entry.log_id);
        self.count += 1;
        if let EntryPayload::Membership(membership) = entry.payload {
            self.membership = StoredMembership::new(Some(entry.log_id), membership);
        }
    }
}

impl RaftSnapshotBuilder<TypeConfig> for Machine {
    async fn build_snapshot(&mut self) -> Result<Snapshot<TypeConfig>> {
        let mut inner = self.lock();
        let bytes = serde_json::to_vec(&inner.state);
        let bytes = bytes.map_err(|error| StorageIOError::write_snapshot(None, &error))?;
        inner.snapshots_made += 1;
        let meta = SnapshotMeta {
            last_log_id: inner.state.applied,
            last_membership: inner.state.membership.clone(),
            snapshot_id: inner.snapshots_made.to_string(),
        };
        inner.snapshot = Some((meta.clone(), bytes.clone()));
        Ok(Snapshot { meta, snapshot: Box::new(Cursor::new(bytes)) })
    }
}

impl RaftStateMachine<TypeConfig> for Machine {
    type SnapshotBuilder = Machine;

    async fn applied_state(
        &mut self,
    ) -> Result<(Option<LogId<u64>>, StoredMembership<u64, BasicNode>)> {
        let state = self.lock().state.clone();
        Ok((state.applied, state.membership))
    }

    async fn apply<I>(&mut self, entries: I) -> Result<Vec<()>>
    where
        I: IntoIterator<Item = Entry> + Send,
        I::IntoIter: Send,
    {
        let mut inner = self.lock();
        Ok(entries.into_iter().map(|entry| inner.state.apply(entry)).collect())
    }

    async fn get_snapshot_builder(&mut self) -> Machine {
        self.clone()
    }

    async fn begin_receiving_snapshot(&mut self) -> Result<Box<Cursor<Vec<u8>>>> {
        Ok(Box::default())
    }

    async fn install_snapshot(
        &mut self,
        meta: &Meta,
        snapshot: Box<Cursor<Vec<u8>>>,
    ) -> Result<()> {
        let bytes = snapshot.into_inner();
        let state = serde_json::from_slice(&bytes);
        let mut inner = self.lock();
        inner.state = state.map_err(|error| StorageIOError::read_snapshot(None, &error))?;
        inner.snapshot = Some((meta.clone(), bytes));
        Ok(())
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<Snapshot<TypeConfig>>> {
        let snapshot = self.lock().snapshot.clone();
        Ok(snapshot.map(|(meta, bytes)| Snapshot { meta, snapshot: Box::new(Cursor::new(bytes)) }))
    }
}
