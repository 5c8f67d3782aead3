//! Learning that a checkpoint is due.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;

use crate::error::OsResult;
use crate::log::commit::Commit;
use crate::log::commit::trigger::Event;
use crate::log::state::core::Core;
use crate::{Error, ErrorKind, Result};

/// A file descriptor that says when a checkpoint is due.
///
/// Made by [`Checkpoint::event`](crate::Checkpoint::event). The descriptor becomes readable
/// when a commit of this process finds that a checkpoint is
/// [due](crate::Checkpoint::is_due), and stays so until [`take`](CheckpointEvent::take) is called.
/// All events of one open log in one process share one descriptor.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("a.wal");
/// use rustix::event::{PollFd, PollFlags, poll};
/// use vellum::{Options, Tuning};
///
/// let tuning = Tuning::new().checkpoint_after_bytes(64 << 10);
/// let log = Options::wal().tuning(tuning).open(&path)?;
/// let event = log.checkpoint().event()?;
/// # log.append_durable(&[0; 70_000])?;
/// // A thread that does nothing else:
/// poll(&mut [PollFd::new(&event, PollFlags::IN)], None)?;
/// if event.take()? {
///     let position = log.published();
///     // ... write a snapshot of what is before `position`, and sync it ...
///     log.checkpoint().set(position)?;
///     log.trim(position)?;
/// }
/// # assert!(!log.checkpoint().is_due());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct CheckpointEvent {
    core: Arc<Core>,
    event: Arc<Event>,
}

impl Commit<'_> {
    /// Whether a checkpoint is due. A text log has none.
    pub(crate) fn is_checkpoint_due(self) -> bool {
        self.core.files.geometry.layout.has_commit_records()
            && self.core.commits.trigger.is_due(self.core.words())
    }
}

/// Refuses a checkpoint with `message` where no commit record can carry it.
pub(crate) fn require_commit_records(core: &Core, message: &str) -> Result<()> {
    match core.files.geometry.layout.has_commit_records() {
        true => Ok(()),
        false => Err(Error::new(ErrorKind::Unsupported, message).at_path(&core.files.dir)),
    }
}

impl CheckpointEvent {
    pub(crate) fn new(core: &Arc<Core>) -> Result<CheckpointEvent> {
        core.attachment()?;
        require_commit_records(core, "a text log has no checkpoint; use a framed one")?;
        let event = core.commits.trigger.event().or_os("make an event for", &core.files.dir)?;
        let event = CheckpointEvent { core: Arc::clone(core), event: Arc::clone(event) };
        event.require_own()?;
        core.commits.trigger.notify_if_due(core.words());
        Ok(event)
    }

    /// Makes the descriptor unreadable, and returns whether a checkpoint is due now.
    ///
    /// As long as one is due, the next commit of this process makes the descriptor readable again.
    /// So a checkpoint that failed is not forgotten. A commit during a checkpoint has the same
    /// effect: the next call then returns `false`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`] in a forked child: the descriptor is the parent's.
    ///
    /// # Cost
    ///
    /// A system call.
    pub fn take(&self) -> Result<bool> {
        self.require_own()?;
        self.event.reset();
        Ok(Commit::of(&self.core).is_checkpoint_due())
    }

    fn require_own(&self) -> Result<()> {
        if self.event.pid == std::process::id() {
            return Ok(());
        }
        let message = "the event for checkpoints stayed in the process that was forked; open the \
                       log again in the child, or ask `checkpoint_due`";
        Err(Error::new(ErrorKind::Unsupported, message).at_path(&self.core.files.dir))
    }
}

impl AsFd for CheckpointEvent {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.fd.as_fd()
    }
}

impl AsRawFd for CheckpointEvent {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}
