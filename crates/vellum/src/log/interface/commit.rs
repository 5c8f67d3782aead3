//! `Log`: functions that make records durable, and checkpoints.

use std::sync::Arc;
use std::time::Duration;

use crate::log::commit::{Commit, commit_path, durable};
use crate::log::state::core::Core;
use crate::log::state::wait;
use crate::log::{CheckpointEvent, Committer, Log};
use crate::options::commit_path::PathOrigin;
use crate::{CommitPath, Lsn, Result};

impl Log {
    /// Makes the record at `lsn`, and everything before it, survive a power cut.
    ///
    /// All threads of all processes share the writes that this takes: a thread that finds the
    /// device free writes everything that has been published so far. If that process dies, another
    /// does it again.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`](crate::ErrorKind::OutOfRange) for a position beyond the end;
    /// [`Busy`](crate::ErrorKind::Busy) while the calling thread holds a
    /// [reservation](Log::reserve) in front of the record: it would wait for itself;
    /// [`Poisoned`](crate::ErrorKind::Poisoned) after a failed write or sync, for every caller in
    /// every process, with the file and the error number of the first failure: nothing is tried
    /// again, because the kernel would report a success that is none;
    /// [`TimedOut`](crate::ErrorKind::TimedOut) with
    /// [`Options::timeout`](crate::Options::timeout). The log can still be read. When all have
    /// closed it, the next opener recovers it.
    ///
    /// # Durability
    ///
    /// When it returns, the record survives a power cut, as far as the device keeps its promises.
    ///
    /// # Cost
    ///
    /// About one write of the device, shared with all commits at the same time: in a
    /// [staged](crate::Fill::Staged) log a direct, synchronous write of whole blocks, in others an
    /// `fdatasync`. The caller sleeps meanwhile. It waits for each append in front of the record
    /// that is in progress, in any process.
    pub fn commit(&self, lsn: Lsn) -> Result<()> {
        Commit::of(&self.core).commit(lsn)
    }

    /// As [`commit`](Log::commit), but waits for others no longer than `timeout`, whatever
    /// [`Options::timeout`](crate::Options::timeout) says.
    ///
    /// # Errors
    ///
    /// [`TimedOut`](crate::ErrorKind::TimedOut), with the process that was waited for, its hold and
    /// its state; otherwise as for [`commit`](Log::commit). After it has timed out the record is as
    /// it was: in the log, seen by readers, and made durable by a later commit.
    ///
    /// # Cost
    ///
    /// As for [`commit`](Log::commit). A write to the device that the caller has begun itself is
    /// ended, however long that takes, and others are looked after every 10 ms: so it may
    /// take that much longer.
    pub fn commit_within(&self, lsn: Lsn, timeout: Duration) -> Result<()> {
        let core = &self.core;
        Commit::of(core).commit_until(Commit::of(core).end_of_commit(lsn)?, wait::after(timeout))
    }

    /// Commits every record whose append had returned, in any thread of any process, when this was
    /// called; returns the durable end.
    ///
    /// Records of other threads may be in front of them whose appends are still in progress:
    /// it waits for these, as [`commit`](Log::commit) does, and commits them too.
    ///
    /// # Errors, Durability, Cost
    ///
    /// As for [`commit`](Log::commit) of the newest record.
    pub fn sync(&self) -> Result<Lsn> {
        Commit::of(&self.core).commit_all()
    }

    /// End of the records that survive a power cut.
    pub fn durable(&self) -> Lsn {
        crate::shared::commit::durable(&self.core.words().commits)
    }

    /// Waits until the record at `lsn`, and everything before it, survives a power cut because
    /// some process has committed it; for `timeout` at most, or for ever for `None`. Commits
    /// nothing itself, and needs the right to read alone.
    ///
    /// # Errors
    ///
    /// [`TimedOut`](crate::ErrorKind::TimedOut), with the process that is writing the record to
    /// the device, if one is; [`OutOfRange`](crate::ErrorKind::OutOfRange) for a position beyond
    /// the end, also when it was truncated away meanwhile;
    /// [`Poisoned`](crate::ErrorKind::Poisoned) when it can be committed no more.
    ///
    /// # Cost
    ///
    /// One load where it is durable already; otherwise the caller sleeps until others commit. A
    /// reader without write permission looks again every 20 ms.
    pub fn wait_durable(&self, lsn: Lsn, timeout: Option<Duration>) -> Result<()> {
        durable::wait_durable(&self.core, lsn, timeout)
    }

    /// A thread that commits for callers that must not wait: futures to await, or file descriptors
    /// to poll.
    ///
    /// For appends of this process to a [staged](crate::Fill::Staged) log it also makes the next
    /// segment, and commits when half a segment is not durable. So no append waits for the device
    /// while it keeps up.
    ///
    /// # Errors
    ///
    /// [`ReadOnly`](crate::ErrorKind::ReadOnly), and [`Io`](crate::ErrorKind::Io) where no thread
    /// can be started.
    pub fn committer(&self) -> Result<Committer> {
        Committer::new(Arc::clone(&self.core))
    }

    /// The position from which the user of the log recovers: reading it, storing it, and learning
    /// when the next one is due.
    pub fn checkpoint(&self) -> Checkpoint<'_> {
        Checkpoint { core: &self.core }
    }
}

impl Committer {
    /// Appends one record, and waits until it survives a power cut; returns its position.
    ///
    /// Nothing happens before it is polled. The first poll appends, as [`Log::append`] does, and
    /// does not wait for the device but where an append itself has to
    /// ([`Tuning::on_stage_full`](crate::Tuning::on_stage_full)). Dropped after that, the record is
    /// in the log and is committed all the same.
    ///
    /// # Errors
    ///
    /// As for [`Log::append_durable`] and [`submit`](Committer::submit).
    pub async fn append_durable(&self, record: &[u8]) -> Result<Lsn> {
        let log = Log { core: Arc::clone(self.core()) };
        let lsn = log.append(record)?;
        if log.holds(record) {
            self.submit(lsn)?.await?;
        }
        Ok(lsn)
    }
}

/// The checkpoint of an open log: [`Log::checkpoint`].
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let log = vellum::Options::wal().open(dir.path().join("a.wal"))?;
/// let position = log.published();
/// // ... write a snapshot of what is before `position`, and sync it ...
/// log.checkpoint().set(position)?;
/// log.trim(position)?;
///
/// // After a restart, with the snapshot:
/// let mut reader = log.reader(log.checkpoint().lsn())?;
/// # assert!(reader.next()?.is_none());
/// # Ok::<(), vellum::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Checkpoint<'a> {
    core: &'a Arc<Core>,
}

impl Checkpoint<'_> {
    /// The position stored last by [`set`](Checkpoint::set), or [`Lsn::ZERO`].
    pub fn lsn(self) -> Lsn {
        self.core.words().commits.checkpoint()
    }

    /// Stores `lsn` with the log as the position from which its user recovers, and commits.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`](crate::ErrorKind::OutOfRange) for a position outside of the log,
    /// [`Unsupported`](crate::ErrorKind::Unsupported) in a text log; otherwise as for
    /// [`Log::commit`].
    ///
    /// # Durability
    ///
    /// When it returns, the mark and every record whose append had returned before survive a power
    /// cut.
    ///
    /// # Cost
    ///
    /// One write of the device, or two.
    pub fn set(self, lsn: Lsn) -> Result<()> {
        Commit::of(self.core).set_checkpoint(lsn)
    }

    /// Whether [`checkpoint_after_bytes`](crate::Tuning::checkpoint_after_bytes) are durable
    /// behind the checkpoint, or behind [`Log::begin`] where none was stored: as many bytes
    /// of log as a recovery reads.
    ///
    /// Counts what every process wrote. `false` where no limit was chosen, and in a text log. Call
    /// it behind a commit, or now and then; [`event`](Checkpoint::event) is for a
    /// thread or an event loop that waits.
    ///
    /// # Cost
    ///
    /// Three reads of memory.
    pub fn is_due(self) -> bool {
        Commit::of(self.core).is_checkpoint_due()
    }

    /// A file descriptor that becomes readable when a commit of this process finds that a
    /// checkpoint is [due](Checkpoint::is_due); at once where it is already.
    ///
    /// A commit of another process, a forked child for example, has no effect on it: the next
    /// commit of this one has. A process that commits nothing calls
    /// [`is_due`](Checkpoint::is_due) now and then.
    ///
    /// # Errors
    ///
    /// [`ReadOnly`](crate::ErrorKind::ReadOnly);
    /// [`Unsupported`](crate::ErrorKind::Unsupported) in a text log, and in a child forked after
    /// the first event was made; [`Io`](crate::ErrorKind::Io) where the process has no file
    /// descriptor left.
    ///
    /// # Cost
    ///
    /// One file descriptor as long as the log is open, and in each commit three reads of memory.
    pub fn event(self) -> Result<CheckpointEvent> {
        CheckpointEvent::new(self.core)
    }
}

impl CommitPath {
    /// Stores this path as the fastest in a measurement on the device of `log`, for all processes
    /// from their next opening on. `vellum prepare` does that.
    ///
    /// On another device, as after the log was copied to another machine, it is ignored. There, and
    /// wherever the device cannot be known again, the default holds. A block that is not safe on
    /// the device ([`safe_block_bytes`](crate::stat::CommitPathStat::safe_block_bytes)) is made as
    /// large as is safe.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](crate::ErrorKind::Unsupported) for a log that is not staged;
    /// [`InvalidOption`](crate::ErrorKind::InvalidOption) for a path out of range.
    ///
    /// # Durability
    ///
    /// The choice costs time and never durability: any path makes commit groups durable.
    pub fn store_measured(self, log: &Log) -> Result<()> {
        commit_path::store(&log.core, Some(self), PathOrigin::Measured)
    }

    /// Stores this path as chosen for the device of `log`, for all processes from their next
    /// opening on.
    ///
    /// It is followed as it is, with a block that is smaller than a physical sector, too: see
    /// [`Tuning::commit_path`](crate::Tuning::commit_path) for the risk.
    ///
    /// # Errors
    ///
    /// As for [`store_measured`](CommitPath::store_measured).
    pub fn store_chosen(self, log: &Log) -> Result<()> {
        commit_path::store(&log.core, Some(self), PathOrigin::Chosen)
    }

    /// Forgets what is stored for `log`.
    ///
    /// # Errors
    ///
    /// As for [`store_measured`](CommitPath::store_measured).
    pub fn forget_stored(log: &Log) -> Result<()> {
        commit_path::store(&log.core, None, PathOrigin::Chosen)
    }
}
