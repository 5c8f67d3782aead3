//! A log: many segments as one address space, shared by many processes.

mod append;
mod commit;
mod interface;
mod keep;
mod layout;
mod open;
mod read;
mod ready;
mod repair;
mod report;
mod ship;
mod state;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use crate::identity::Recovery;
use crate::log::open::{enter, reopen};
use crate::log::report::{metrics, stat, verify};
use crate::log::state::core::Core;
use crate::{Error, ErrorKind, Layout, Options, Result};

pub use append::batch::Batch;
pub use append::record_writer::Buffer;
pub use append::record_writer::RecordWriter;
pub use append::reservation::Reservation;
pub use commit::checkpoint::CheckpointEvent;
pub use commit::commit_path::CommitPathStat;
pub use commit::committer::{Committer, Completion};
pub use interface::commit::Checkpoint;
pub use interface::ship::{Ship, open as open_to_ship};
pub use keep::cursors::cursor::{Cursor, CursorHold};
pub use keep::cursors::stat::CursorStat;
pub use keep::trim::TrimReport;
pub use read::backwards::Backwards;
pub use read::pollable::PollableReader;
pub use read::reader::Reader;
pub use read::records::Records;
pub use ready::segment_keeper::SegmentKeeper;
pub use report::copy_out::repair;
pub use report::metrics::{Metrics, RemovedFiles, RemovedStat};
pub use report::stat::{ParticipantStat, SegmentStat, SegmentState, Stat};
pub use ship::shipper::Shipper;
pub use ship::state::{ShipFault, ShipState, ShipStatus};
pub use state::holds::{Hold, HoldKind, InFlight, ProcessState};

/// An open log.
///
/// Any number of threads may use one `Log`, any number of processes may have the same log open, and
/// after `fork` the child may keep using its copy: it becomes a participant of its own at its first
/// append. No thread runs behind it.
///
/// A clone is the same open log, and costs one atomic operation. A [`Reader`] or a [`Committer`] of
/// a log holds it open as a clone does. When the last of them is dropped, the process leaves the
/// log, and the last process to leave closes it; others notice nothing. [`close`](Log::close) does
/// the same and returns errors.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("app.log");
/// use vellum::{Lsn, Options};
///
/// let log = Options::events().open(&path)?;
/// let lsn = log.append(b"a record")?;
///
/// let mut reader = log.reader(Lsn::ZERO)?;
/// let record = reader.next()?.unwrap();
/// assert_eq!((record.lsn, record.payload), (lsn, b"a record".as_slice()));
/// # Ok::<(), vellum::Error>(())
/// ```
#[derive(Clone)]
pub struct Log {
    core: Arc<Core>,
}

impl Log {
    fn open(dir: &Path, options: &Options) -> Result<Log> {
        Ok(Log { core: Arc::new(enter::open(dir, options)?) })
    }

    /// Opens the log at this one's path once more: joins the one that is there, or makes one with
    /// the same layout, way to fill and policy. To continue after
    /// [`Removed`](crate::ErrorKind::Removed).
    ///
    /// All processes that do so are in the same new log. This one stays as it is, for its readers
    /// and commits, until it is dropped. The path is meant from where it was opened, whatever the
    /// working directory is now. Where the directory is still there without its file `lock`, as in
    /// the middle of `rm -rf`, it is renamed to `NAME.removed-TIME-PID` first.
    ///
    /// # Errors
    ///
    /// As for [`Options::open`]; [`NotFound`](crate::ErrorKind::NotFound) if it was opened for
    /// reading, and there is none.
    pub fn reopen(&self) -> Result<Log> {
        Ok(Log { core: Arc::new(reopen::reopen(&self.core)?) })
    }

    /// Leaves the log as dropping it does, and returns errors.
    ///
    /// The last process to leave cuts a text log to its text and commits what a
    /// [staged](crate::Fill::Staged) log has. The others leave no more than their place.
    ///
    /// # Errors
    ///
    /// [`Busy`](crate::ErrorKind::Busy) where a clone, a reader or a committer holds it open: then
    /// the last of them leaves it when it is dropped, and its errors are lost. Otherwise as for
    /// [`commit`](Log::commit), [`NoSpace`](crate::ErrorKind::NoSpace) and
    /// [`Io`](crate::ErrorKind::Io): the process has left the log all the same, and uncommitted
    /// records are there as after a `kill -9`.
    ///
    /// # Durability
    ///
    /// Committed records survive a power cut, and so does all of a staged log that no other process
    /// has open. No other record is made durable by this: [`sync`](Log::sync) is for that.
    ///
    /// # Cost
    ///
    /// Half a dozen system calls; in a staged log two writes of the device.
    pub fn close(self) -> Result<()> {
        let path = self.path().to_path_buf();
        match Arc::into_inner(self.core) {
            Some(mut core) => state::core::close(&mut core),
            None => {
                let message = "the log stays open: this process has a clone of it, or a reader, a \
                               committer or something else that was made from it";
                Err(Error::new(ErrorKind::Busy, message).at_path(&path))
            }
        }
    }

    /// Whether the log is still at its path.
    pub(crate) fn is_in_place(&self) -> bool {
        state::place::require(&self.core).is_ok()
    }

    /// The recovery on opening the log, if it was this process that recovered it.
    /// [`Stat::last_recovery`] has the newest one of any process.
    pub fn recovery(&self) -> Option<Recovery> {
        self.core.opened.recovery
    }

    /// The state of the log, its files and its participants. Changes nothing.
    ///
    /// # Errors
    ///
    /// [`Io`](crate::ErrorKind::Io) where the directory cannot be read.
    pub fn stat(&self) -> Result<Stat> {
        let stat = stat::stat(&self.core);
        // Values of lost words are not true.
        self.core.check_region()?;
        stat
    }

    /// The numbers that a monitor collects. Changes nothing. How far cursors are behind is in
    /// [`cursors`](Log::cursors).
    ///
    /// # Cost
    ///
    /// Reads shared words and, for each process that holds something, a file of `/proc`: tens of
    /// microseconds. It opens no file of the log, as [`stat`](Log::stat) does.
    pub fn metrics(&self) -> Metrics {
        metrics::metrics(&self.core)
    }

    /// Reads every byte from the beginning to the published end and reports damage. Changes
    /// nothing.
    ///
    /// # Errors
    ///
    /// [`Io`](crate::ErrorKind::Io) where files cannot be read; damage is no error but part of
    /// the report.
    pub fn verify(&self) -> Result<crate::stat::VerifyReport> {
        verify::verify(&self.core)
    }

    /// How records lie in the segments.
    pub fn layout(&self) -> Layout {
        self.core.files.geometry.layout
    }

    /// The log's directory.
    pub fn path(&self) -> &Path {
        self.core.files.dir.path()
    }
}

impl Options {
    /// Opens or creates the log in directory `path`.
    ///
    /// # Errors
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound), [`AlreadyExists`](crate::ErrorKind::AlreadyExists)
    /// and [`PermissionDenied`](crate::ErrorKind::PermissionDenied) as for a file;
    /// [`InvalidOption`](crate::ErrorKind::InvalidOption) for a value out of range, for a log of
    /// another kind of records, and where a log is created below a damaged
    /// `vellum.toml`; [`Incompatible`](crate::ErrorKind::Incompatible)
    /// where the path is something other than a log of this version;
    /// [`Unsupported`](crate::ErrorKind::Unsupported) on a filesystem that cannot carry a log, with
    /// the reason; [`Corrupt`](crate::ErrorKind::Corrupt) for damage to committed records, with
    /// file and position; [`Poisoned`](crate::ErrorKind::Poisoned) while others have the log open
    /// after a failed write; [`TooManyParticipants`](crate::ErrorKind::TooManyParticipants) when
    /// 1024 processes are attached.
    ///
    /// # Durability
    ///
    /// A created log survives the death of every process. After a power cut it is there whole or
    /// not at all; a [staged](crate::Fill::Staged) one is there once this has returned.
    ///
    /// # Cost
    ///
    /// A dozen system calls; where the log is created two syncs, and two calls for each directory
    /// above it. Segments are read only after a reboot or when the control file is gone: the newest
    /// ones, or all of a log in which nothing was ever committed ([`Log::recovery`]).
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Log> {
        Log::open(path.as_ref(), self)
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.core.fmt(f)
    }
}
