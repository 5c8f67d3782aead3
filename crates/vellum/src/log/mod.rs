//! A log: many segments as one address space, shared by many processes.

mod append;
mod attachment;
mod backoff;
mod backwards;
mod batch;
mod checkpoint;
mod commit;
mod commit_path;
mod committer;
mod control;
mod core;
mod create;
mod cursors;
mod device;
mod durable;
mod fill;
mod follow;
mod framed;
mod full;
mod gap;
mod gate;
mod holds;
mod identity;
mod metrics;
mod names;
mod open;
mod open_segments;
mod pad;
mod pollable;
mod positions;
mod prepare_lock;
mod prepared;
mod preparing;
mod presence;
mod read;
mod rebuild;
mod record;
mod record_writer;
mod records;
mod removal;
mod reopen;
mod repair;
mod reservation;
mod reserve;
mod segments;
mod ship;
mod shrink;
mod sight;
mod slots;
mod space;
mod stage;
mod stat;
mod stored;
mod text;
mod time_index;
mod trigger;
mod trim;
mod truncate;
mod trust;
mod verify;
mod wait;
mod wakeup;
mod watch;
mod window;
mod wipe;
mod writer;

use std::fmt;
use std::io::IoSlice;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::shared::primitive::Ordering;
use crate::shared::tail_word;
use crate::{CommitPath, Layout, Lsn, Options, PathOrigin, Recovery, Result};

pub use backwards::Backwards;
pub use batch::Batch;
pub use checkpoint::CheckpointEvent;
pub use commit_path::CommitPathStat;
pub use committer::{Committer, Completion};
pub use cursors::cursor::{Cursor, CursorHold};
pub use cursors::stat::CursorStat;
pub use gap::Gap;
pub use holds::{Hold, HoldKind, InFlight, ProcessState};
pub use metrics::{CommitStat, Metrics, RemovedFiles, RemovedStat};
pub use pollable::PollableReader;
pub use preparing::SegmentKeeper;
pub use read::Reader;
pub use record::{OwnedRecord, Record};
#[cfg(any(feature = "log", feature = "tracing"))]
pub(crate) use record_writer::Buffer;
pub use record_writer::RecordWriter;
pub use records::Records;
pub use repair::{RepairReport, repair};
pub use reservation::Reservation;
pub use ship::decode::Decoder;
pub use ship::raw::{Piece, PieceSegment};
pub use ship::restore::{FileName, RestoreOptions, Restorer};
pub use ship::shape::LogShape;
pub use ship::shipper::Shipper;
pub use ship::state::{ShipCounters, ShipFault, ShipState, ShipStatus};
pub use ship::wait::Durability;
pub use stat::{ParticipantStat, SegmentStat, SegmentState, Stat};
pub use trim::TrimReport;
pub use verify::{Damage, VerifyReport};

/// An open log.
///
/// Any number of threads may use one `Log`, any number of processes may have the same log open,
/// and after `fork` the child may go on using its copy: it becomes a participant of its own at its
/// first append. Dropping a `Log` leaves the others alone. No thread runs behind it.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("app.log");
/// use vellum::{Lsn, Options};
///
/// let log = Options::new().open(&path)?;
/// let lsn = log.append(b"a record")?;
///
/// let mut reader = log.reader(Lsn::ZERO)?;
/// let record = reader.next()?.unwrap();
/// assert_eq!((record.lsn, record.payload), (lsn, b"a record".as_slice()));
/// # Ok::<(), vellum::Error>(())
/// ```
pub struct Log {
    core: Arc<core::Core>,
}

impl Log {
    fn open(dir: &Path, options: &Options) -> Result<Log> {
        Ok(Log { core: Arc::new(open::open(dir, options)?) })
    }

    /// Appends one record; returns its position, or [`Lsn::ZERO`] for one that was
    /// [dropped](crate::OnFull::Drop).
    ///
    /// In a text log the bytes go in as they are: the caller brings the newline.
    ///
    /// # Errors
    ///
    /// [`NoSpace`](crate::ErrorKind::NoSpace) on a full disk, unless
    /// [`Options::on_full`] says otherwise, and
    /// [`RecordTooLarge`](crate::ErrorKind::RecordTooLarge) for more than 4 GiB − 1, both before
    /// anything is reserved, and so is [`TimedOut`](crate::ErrorKind::TimedOut) with
    /// [`Options::timeout`]; [`Removed`](crate::ErrorKind::Removed) within a second after the log's
    /// directory was removed or moved; [`ReadOnly`](crate::ErrorKind::ReadOnly);
    /// [`Io`](crate::ErrorKind::Io) where the operating system refuses to write. After an error
    /// the record is not in the log, and the log goes on.
    ///
    /// # Durability
    ///
    /// When it returns, the record survives the death of this process and of every other, and
    /// readers see it as soon as the records before it are published. It does not yet survive a
    /// power cut: that is what [`commit`](Log::commit) is for.
    ///
    /// # Cost
    ///
    /// A small record costs two contended atomic operations and a copy; one over 128 KiB one
    /// `pwrite`. Every [`prefault_bytes`](Options::prefault_bytes) one of the writers prepares
    /// the next window, every segment the next file.
    #[inline]
    pub fn append(&self, record: &[u8]) -> Result<Lsn> {
        self.core.append(&[record])
    }

    /// Appends one record given in parts; returns its position.
    ///
    /// # Errors, Durability, Cost
    ///
    /// As for [`append`](Log::append). More than eight parts cost an allocation.
    pub fn append_vectored(&self, parts: &[IoSlice<'_>]) -> Result<Lsn> {
        append::with_slices(parts, |parts| self.core.append(parts))
    }

    /// Opens the log at this one's path once more: joins the one that is there, or makes one with
    /// the same layout, way to fill and policy. To go on after
    /// [`Removed`](crate::ErrorKind::Removed).
    ///
    /// All processes that do so are in the same new log. This one stays as it is, for what still
    /// reads or commits, until it is dropped. The path is meant from where it was opened, whatever
    /// the working directory is now. Where the directory is still there without its file `lock`, as
    /// in the middle of `rm -rf`, it is renamed to `NAME.removed-TIME-PID` first.
    ///
    /// # Errors
    ///
    /// As for [`Options::open`]; [`NotFound`](crate::ErrorKind::NotFound) if it was opened for
    /// reading, or not to be created, and there is none.
    pub fn reopen(&self) -> Result<Log> {
        let core = &self.core;
        Ok(Log { core: Arc::new(reopen::reopen(core, core.options.may_create())?) })
    }

    /// Whether the log is still at its path.
    #[cfg(any(feature = "log", feature = "tracing"))]
    pub(crate) fn is_in_place(&self) -> bool {
        self.core.require_place().is_ok()
    }

    /// As [`reopen`](Log::reopen), but makes a log where there is none also if this one was not to
    /// be created.
    ///
    /// # Errors
    ///
    /// As for [`reopen`](Log::reopen).
    pub fn reopen_or_create(&self) -> Result<Log> {
        Ok(Log { core: Arc::new(reopen::reopen(&self.core, true)?) })
    }

    /// Makes the record at `lsn`, and everything before it, survive a power cut.
    ///
    /// All threads of all processes share the writes that this takes: whoever finds the device
    /// free writes everything that has been published so far. If that process dies, another does
    /// it again.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`](crate::ErrorKind::OutOfRange) for a position beyond the end;
    /// [`Poisoned`](crate::ErrorKind::Poisoned) after a failed write or sync, for every caller in
    /// every process, with the file and the error number of the first failure: nothing is tried
    /// again, because the kernel would report a success that is none;
    /// [`TimedOut`](crate::ErrorKind::TimedOut) with [`Options::timeout`]. The log can still be
    /// read. When all have closed it, the next opener recovers it.
    ///
    /// # Durability
    ///
    /// When it returns, the record survives a power cut, as far as the device keeps its promises.
    ///
    /// # Cost
    ///
    /// About one write of the device, shared with everybody who commits at the same time: in a
    /// [staged](crate::Fill::Staged) log a direct, synchronous write of whole blocks, in others an
    /// `fdatasync`. The caller sleeps meanwhile. While a reservation of the calling thread is
    /// unpublished, records behind it cannot be committed, and waiting for that never ends.
    pub fn commit(&self, lsn: Lsn) -> Result<()> {
        self.core.commit(lsn)
    }

    /// As [`commit`](Log::commit), but waits for others no longer than `timeout`, whatever
    /// [`Options::timeout`] says.
    ///
    /// # Errors
    ///
    /// [`TimedOut`](crate::ErrorKind::TimedOut), with the process that was waited for, what it
    /// holds and what it does; otherwise as for [`commit`](Log::commit). After it has timed out the
    /// record is as it was: in the log, seen by readers, and made durable by a later commit.
    ///
    /// # Cost
    ///
    /// As for [`commit`](Log::commit). A write to the device that the caller has begun itself is
    /// ended, however long that takes, and others are looked after every 10 ms: so it may
    /// take that much longer.
    pub fn commit_within(&self, lsn: Lsn, timeout: Duration) -> Result<()> {
        let core = &self.core;
        core.commit_until(core.end_of_commit(lsn)?, wait::after(timeout))
    }

    /// Appends one record and commits it; returns its position.
    ///
    /// # Errors, Durability, Cost
    ///
    /// As for [`append`](Log::append) and [`commit`](Log::commit). After an error of the commit
    /// the record may be in the log, and may be found by recovery.
    pub fn append_durable(&self, record: &[u8]) -> Result<Lsn> {
        let lsn = self.append(record)?;
        if !record.is_empty() || self.layout() == Layout::Framed {
            self.commit(lsn)?;
        }
        Ok(lsn)
    }

    /// Commits everything published so far; returns the durable end.
    ///
    /// # Errors, Cost
    ///
    /// As for [`commit`](Log::commit).
    pub fn sync(&self) -> Result<Lsn> {
        self.core.sync()
    }

    /// End of what survives a power cut.
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

    /// Makes the record at `lsn`, and everything before it, survive what `durability` says: a power
    /// cut, as [`commit`](Log::commit) does, or also the loss of this machine.
    ///
    /// With [`Durability::Remote`] it commits, has the process that ships the log ship at once
    /// (as soon as its minimum interval allows), and waits until that is done, no longer than
    /// [`Options::timeout`] for both.
    ///
    /// # Errors
    ///
    /// As for [`commit`](Log::commit), and those of [`wait_shipped`](Log::wait_shipped). After one
    /// of these the record is durable here, and is shipped later if a process ships.
    ///
    /// # Cost
    ///
    /// As for [`commit`](Log::commit), and a round trip to the store, shared with everybody who
    /// waits at the same time.
    pub fn commit_to(&self, lsn: Lsn, durability: Durability) -> Result<()> {
        ship::wait::commit_to(&self.core, lsn, durability)
    }

    /// End of what is shipped: everything before it is also where the log is shipped to. Zero where
    /// no shipper has said it since the last boot. Never beyond [`durable`](Log::durable).
    pub fn shipped(&self) -> Lsn {
        self.core.words().ship.shipped().min(self.durable())
    }

    /// Waits until the record at `lsn`, and everything before it, is shipped; for `timeout` at
    /// most, or for ever for `None`. Returns [`shipped`](Log::shipped). Commits nothing itself.
    ///
    /// # Errors
    ///
    /// [`NoShipper`](crate::ErrorKind::NoShipper) at once where no process ships the log, and
    /// within 100 ms after the one that does has died;
    /// [`Fenced`](crate::ErrorKind::Fenced) where another machine or copy has taken over;
    /// [`Poisoned`](crate::ErrorKind::Poisoned) for what can be committed no more;
    /// [`TimedOut`](crate::ErrorKind::TimedOut); [`OutOfRange`](crate::ErrorKind::OutOfRange) for a
    /// position beyond the end; [`Trimmed`](crate::ErrorKind::Trimmed) for one that was removed
    /// before it was shipped.
    ///
    /// # Cost
    ///
    /// One load where it is shipped already; otherwise the caller sleeps, and looks for the shipper
    /// every 100 ms. A reader without write permission cannot have the shipper hurry, and looks
    /// every 20 ms.
    pub fn wait_shipped(&self, lsn: Lsn, timeout: Option<Duration>) -> Result<Lsn> {
        ship::wait::wait_shipped(&self.core, lsn, timeout)
    }

    /// How shipping goes. Changes nothing, and needs the right to read alone.
    ///
    /// # Errors
    ///
    /// [`Io`](crate::ErrorKind::Io) and [`Corrupt`](crate::ErrorKind::Corrupt) where the file of
    /// the cursors cannot be read.
    ///
    /// # Cost
    ///
    /// Reads that file, and looks through `/proc` for the shipper.
    pub fn ship_state(&self) -> Result<ShipState> {
        ship::state::state(&self.core)
    }

    /// The right to ship the log, if no other process has it; it ends when it is dropped, or when
    /// the process dies. For programs that ship; the log sends nothing itself.
    ///
    /// # Errors
    ///
    /// [`ReadOnly`](crate::ErrorKind::ReadOnly); [`Io`](crate::ErrorKind::Io) when the process is
    /// short of descriptors.
    pub fn shipper(&self) -> Result<Option<Shipper>> {
        Shipper::elect(&self.core)
    }

    /// Keeps nothing for the shipper any more ([`Shipper::hold`]): what was not shipped may be
    /// removed. False if nothing was kept.
    ///
    /// # Errors
    ///
    /// [`Busy`](crate::ErrorKind::Busy) while a process ships; otherwise as for
    /// [`Cursor::remove`].
    pub fn detach_shipper(&self) -> Result<bool> {
        ship::hold::detach(&self.core)
    }

    /// What the log is made of, for who restores it elsewhere ([`Restorer`]).
    ///
    /// # Errors
    ///
    /// [`Unsupported`](crate::ErrorKind::Unsupported) for a log of an earlier version that has no
    /// id yet.
    pub fn shape(&self) -> Result<LogShape> {
        LogShape::of(&self.core)
    }

    /// A thread that commits for those who must not wait, and file descriptors to poll.
    ///
    /// # Errors
    ///
    /// [`ReadOnly`](crate::ErrorKind::ReadOnly), and [`Io`](crate::ErrorKind::Io) where no thread
    /// can be started.
    pub fn committer(&self) -> Result<Committer> {
        Committer::new(Arc::clone(&self.core))
    }

    /// Stores `lsn` with the log as the position from which its user recovers, and commits.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`](crate::ErrorKind::OutOfRange) for a position outside of the log,
    /// [`Unsupported`](crate::ErrorKind::Unsupported) in a text log; otherwise as for
    /// [`commit`](Log::commit).
    ///
    /// # Durability
    ///
    /// When it returns, the mark and everything published before survive a power cut.
    pub fn set_checkpoint(&self, lsn: Lsn) -> Result<()> {
        self.core.set_checkpoint(lsn)
    }

    /// The position stored last by [`set_checkpoint`](Log::set_checkpoint), or [`Lsn::ZERO`].
    pub fn checkpoint(&self) -> Lsn {
        let words = &self.core.words().commits;
        Lsn::new(words.ends.checkpoint.load(Ordering::Acquire))
    }

    /// Whether [`Options::checkpoint_after_bytes`] are durable behind the checkpoint, or behind
    /// [`begin`](Log::begin) where none was stored: as many bytes of log as a recovery reads.
    ///
    /// Counts what every process wrote. `false` where no limit was chosen, and in a text log. Call
    /// it behind a commit, or now and then; [`checkpoint_event`](Log::checkpoint_event) is for a
    /// thread or an event loop that waits.
    ///
    /// # Cost
    ///
    /// Three reads of memory.
    pub fn checkpoint_due(&self) -> bool {
        self.core.is_checkpoint_due()
    }

    /// A file descriptor that becomes readable when a commit of this process finds that a
    /// checkpoint is [due](Log::checkpoint_due); at once where it is already.
    ///
    /// A commit of another process, a forked child for example, has no effect on it: the next
    /// commit of this one has. A process that commits nothing calls
    /// [`checkpoint_due`](Log::checkpoint_due) now and then.
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
    pub fn checkpoint_event(&self) -> Result<CheckpointEvent> {
        CheckpointEvent::new(&self.core)
    }

    /// Drops the newest part of the log: the record at `from` and all behind it.
    ///
    /// Positions from `from` on are given out again, in the next [epoch](Log::epoch): those that
    /// were [stored](Log::position) before are refused. Readers that have come further get
    /// [`OutOfRange`](crate::ErrorKind::OutOfRange). After an error the epoch may have begun
    /// although nothing was dropped.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`](crate::ErrorKind::OutOfRange) for a position outside of the log or (framed)
    /// where no record starts; [`Busy`](crate::ErrorKind::Busy) while another process has the log
    /// open for writing, a child lives that was forked since this one opened it and may append, or
    /// an append of this process is in progress; otherwise as for [`commit`](Log::commit).
    ///
    /// # Durability
    ///
    /// Everything before is committed first. When it returns, what was dropped stays dropped.
    ///
    /// # Cost
    ///
    /// A few syncs, and zeros over what was dropped.
    pub fn truncate(&self, from: Lsn) -> Result<()> {
        truncate::truncate(&self.core, from)
    }

    /// What opening the log had to recover, if it was this process that had to.
    /// [`Stat::last_recovery`] has the newest one of any process.
    pub fn recovery(&self) -> Option<Recovery> {
        self.core.recovery
    }

    /// Makes sure that `segments` segments are ready beyond the one being written; returns how
    /// many were made. Of a text log one file is kept ready, which gets its name later.
    ///
    /// # Errors
    ///
    /// [`NoSpace`](crate::ErrorKind::NoSpace) on a full disk. Those made before are given back, or
    /// stay where another process has the log open.
    ///
    /// # Durability
    ///
    /// In a [staged](crate::Fill::Staged) log they and their names are on the device when it
    /// returns, so commits in them wait for no journal.
    pub fn prepare(&self, segments: u64) -> Result<u64> {
        prepared::prepare_all(&self.core, segments)
    }

    /// How this process brings commit groups to the device, and why; `None` for a log that is not
    /// [staged](crate::Fill::Staged).
    pub fn commit_path(&self) -> Option<CommitPathStat> {
        commit_path::stat(&self.core)
    }

    /// Stores the path that was the fastest in a measurement on this device, for all processes from
    /// their next opening on. `vellum prepare` does that.
    ///
    /// On another device, as after the log was copied to another machine, it is ignored. There, and
    /// wherever the device cannot be known again, the default holds. A block that is not safe on
    /// the device ([`CommitPathStat::safe_block_bytes`]) is made as large as is safe.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](crate::ErrorKind::Unsupported) for a log that is not staged;
    /// [`InvalidOption`](crate::ErrorKind::InvalidOption) for a path out of range.
    ///
    /// # Durability
    ///
    /// The choice costs time and never durability: any path makes commit groups durable.
    pub fn note_measured_path(&self, path: CommitPath) -> Result<()> {
        commit_path::store(&self.core, Some(path), PathOrigin::Measured)
    }

    /// Stores a path that somebody chose, for this device and for all processes from their next
    /// opening on; `None` forgets what is stored.
    ///
    /// It is followed as it is, with a block that is smaller than a physical sector, too: see
    /// [`Options::commit_path`](crate::Options::commit_path) for what that risks.
    ///
    /// # Errors
    ///
    /// As [`note_measured_path`](Log::note_measured_path).
    pub fn choose_commit_path(&self, path: Option<CommitPath>) -> Result<()> {
        commit_path::store(&self.core, path, PathOrigin::Chosen)
    }

    /// Gives back the segments that stand ready beyond what is written, and returns how many those
    /// were. Whoever appends next makes what it needs.
    ///
    /// # Errors
    ///
    /// [`Busy`](crate::ErrorKind::Busy) as for [`truncate`](Log::truncate).
    pub fn release_prepared(&self) -> Result<u64> {
        prepared::release(&self.core, u64::MAX)
    }

    /// A thread that keeps `segments` segments ready, until it is dropped.
    ///
    /// # Errors
    ///
    /// As for [`prepare`](Log::prepare), and [`Io`](crate::ErrorKind::Io) where no thread can be
    /// started.
    pub fn keep_prepared(&self, segments: u64) -> Result<SegmentKeeper> {
        SegmentKeeper::new(Arc::clone(&self.core), segments)
    }

    /// Reserves `len` bytes at the tail, to be written in place and then published.
    ///
    /// # Errors
    ///
    /// As for [`append`](Log::append); nothing is reserved after an error.
    pub fn reserve(&self, len: usize) -> Result<Reservation<'_>> {
        let core = &self.core;
        core.with_space(|| Reservation::new(core, len))
    }

    /// Begins a record that is written piece by piece, by [`write!`](std::write) or who else takes
    /// an [`io::Write`](std::io::Write).
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let log = vellum::Options::new().open(dir.path().join("app.log")).unwrap();
    /// use std::io::Write;
    ///
    /// let mut record = log.writer();
    /// write!(record, "{} of {}", 1, 3)?;
    /// let lsn = record.append()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn writer(&self) -> RecordWriter<'_> {
        RecordWriter::new(self)
    }

    /// Begins a batch: several records that appear all or none.
    pub fn batch(&self) -> Batch<'_> {
        Batch::new(&self.core)
    }

    /// A reader that starts at `from`, or at the oldest record for [`Lsn::ZERO`].
    ///
    /// # Errors
    ///
    /// [`Trimmed`](crate::ErrorKind::Trimmed) for a position that is no longer kept,
    /// [`OutOfRange`](crate::ErrorKind::OutOfRange) for one beyond the end, or where no whole
    /// record starts: in a text log in the middle of a line.
    pub fn reader(&self, from: Lsn) -> Result<Reader> {
        Reader::new(Arc::clone(&self.core), from)
    }

    /// The records that start before `before`, the newest first:
    /// `log.backwards(log.published())` has all, `log.backwards(log.durable())` those that were
    /// committed.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](crate::ErrorKind::Corrupt) where the words of the control file make no sense.
    /// What reading comes to is an item of the iterator.
    ///
    /// # Cost
    ///
    /// Records have no pointers back. So the first record takes a walk from a start that is known:
    /// in a framed log that is committed, from one in the last 64 KiB or not far before; in one
    /// that is not, from the start of the last segment; in a text log, from 64 KiB before the end.
    /// The length of the log makes no difference. Every byte is read three times at most. Memory:
    /// 8 bytes for each 64 KiB of a segment, and the positions of the records in 64 KiB.
    pub fn backwards(&self, before: Lsn) -> Result<Backwards> {
        Backwards::new(&self.core, before)
    }

    /// The newest record that is published, or `None` in an empty log.
    ///
    /// # Errors, Cost
    ///
    /// As for [`backwards`](Log::backwards).
    pub fn last_record(&self) -> Result<Option<OwnedRecord>> {
        self.backwards(Lsn::MAX)?.next().transpose()
    }

    /// The record at `lsn`, which was returned by an append or a reader.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let log = vellum::Options::new().open(dir.path().join("app.log")).unwrap();
    /// let lsn = log.append(b"a record")?;
    /// assert_eq!(log.read_at(lsn)?.payload, b"a record");
    /// # Ok::<(), vellum::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Trimmed`](crate::ErrorKind::Trimmed) for a position that is no longer kept;
    /// [`OutOfRange`](crate::ErrorKind::OutOfRange) for one that is not published, or (framed)
    /// where no whole record starts, which is also how damage shows: the checksum covers the
    /// position. In a text log every position is good, and the record is the rest of its line.
    ///
    /// # Cost
    ///
    /// Opening the file of the segment, one `pread` for up to 4 KiB and another one for a longer
    /// record, its checksum, and an allocation. To read many records that follow one another, a
    /// [`reader`](Log::reader) is cheaper.
    pub fn read_at(&self, lsn: Lsn) -> Result<OwnedRecord> {
        records::read_at(&self.core, lsn)
    }

    /// As [`read_at`](Log::read_at), into the caller's buffer, whose content is replaced; returns
    /// where the next record starts. After an error the buffer is as it was.
    ///
    /// # Errors, Cost
    ///
    /// As for [`read_at`](Log::read_at), but the allocation.
    pub fn read_into(&self, lsn: Lsn, payload: &mut Vec<u8>) -> Result<Lsn> {
        records::read_into(&self.core, lsn, payload)
    }

    /// Oldest position still kept.
    pub fn begin(&self) -> Lsn {
        self.core.begin()
    }

    /// End of what readers can see: everything before it is filled. Where the log was opened for
    /// reading only, what the dead had reserved and did not fill holds it back no more, because
    /// readers go past that.
    pub fn published(&self) -> Lsn {
        sight::Sight::of(&self.core).end
    }

    /// End of what is reserved.
    pub fn tail(&self) -> Lsn {
        tail_word::tail(self.core.words())
    }

    /// Drops what lies before `before`: whole segments are removed, the rest is no longer shown.
    ///
    /// Drops less where a [cursor](Cursor::hold) holds records back:
    /// [`held_at`](TrimReport::held_at) tells.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`](crate::ErrorKind::OutOfRange) for a position beyond
    /// [`published`](Log::published), or (framed) where no record starts. A position before
    /// [`begin`](Log::begin) is fine and changes nothing.
    pub fn trim(&self, before: Lsn) -> Result<TrimReport> {
        trim::trim(&self.core, before)
    }

    /// The cursor of this name. A new one is made at the oldest record, and holds nothing.
    ///
    /// A name has 1 to 64 letters, digits, `.`, `_` and `-` (ASCII).
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let log = vellum::Options::new().open(dir.path().join("app.log")).unwrap();
    /// use vellum::CursorHold;
    ///
    /// log.append(b"a record")?;
    /// let cursor = log.cursor("shipper")?;
    /// cursor.own()?;
    /// cursor.hold(CursorHold::new().max_bytes(1 << 30))?;
    /// let mut reader = cursor.reader()?;
    /// while let Some(record) = reader.next()? {
    ///     // Send it.
    ///     let finished = record.next_lsn;
    ///     cursor.commit(finished)?;
    /// }
    /// # assert_eq!(log.cursors()?[0].lag_records, Some(0));
    /// # Ok::<(), vellum::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidOption`](crate::ErrorKind::InvalidOption) for another name;
    /// [`Busy`](crate::ErrorKind::Busy) when the log has 128 cursors already;
    /// [`NotFound`](crate::ErrorKind::NotFound) when the log was opened for reading only and has no
    /// such cursor; [`NoSpace`](crate::ErrorKind::NoSpace) for the first cursor of a log on a full
    /// disk; otherwise as for [`Cursor::set`].
    ///
    /// # Durability
    ///
    /// When it returns, the cursor survives a power cut.
    ///
    /// # Cost
    ///
    /// Reading a file of 132 KiB. The first cursor of a log makes that file. A new cursor costs two
    /// writes and two syncs. A log without cursors pays nothing for them.
    pub fn cursor(&self, name: &str) -> Result<Cursor> {
        self.cursor_at(name, Lsn::ZERO)
    }

    /// As [`cursor`](Log::cursor), but a new one is made at `at`. One that is there stays where it
    /// is.
    ///
    /// # Errors, Durability, Cost
    ///
    /// As for [`cursor`](Log::cursor), and as for [`Cursor::set`] for the position.
    pub fn cursor_at(&self, name: &str, at: Lsn) -> Result<Cursor> {
        Cursor::open(Arc::clone(&self.core), name, at)
    }

    /// The state of every cursor of the log, in the order of their names.
    ///
    /// # Errors
    ///
    /// [`Io`](crate::ErrorKind::Io), [`Corrupt`](crate::ErrorKind::Corrupt) and
    /// [`Incompatible`](crate::ErrorKind::Incompatible) when the file of the cursors cannot be
    /// read.
    ///
    /// # Cost
    ///
    /// Reading that file; for each cursor, reading up to 1 MiB of the log to count records, and a
    /// look through `/proc` for its owner.
    pub fn cursors(&self) -> Result<Vec<CursorStat>> {
        cursors::stat::stat(&self.core)
    }

    /// Has a text log go on in a new file at the next append, whatever its policy says.
    ///
    /// Until somebody appends nothing happens, and the file that is written stays the newest. What
    /// other threads append at this moment may still go there. An empty file is not left.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](crate::ErrorKind::Unsupported) in a framed log,
    /// [`ReadOnly`](crate::ErrorKind::ReadOnly).
    pub fn rotate(&self) -> Result<()> {
        self.core.rotate()
    }

    /// The state of the log, its files and its participants. Changes nothing.
    ///
    /// # Errors
    ///
    /// [`Io`](crate::ErrorKind::Io) where the directory cannot be read.
    pub fn stat(&self) -> Result<Stat> {
        stat::stat(&self.core)
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
    pub fn verify(&self) -> Result<VerifyReport> {
        verify::verify(&self.core)
    }

    /// How records lie in the segments.
    pub fn layout(&self) -> Layout {
        self.core.geometry.layout
    }

    /// The log's directory.
    pub fn path(&self) -> &Path {
        self.core.dir.path()
    }
}

impl Options {
    /// Opens or creates the log in directory `path`.
    ///
    /// # Errors
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound), [`AlreadyExists`](crate::ErrorKind::AlreadyExists)
    /// and [`PermissionDenied`](crate::ErrorKind::PermissionDenied) as for a file;
    /// [`InvalidOption`](crate::ErrorKind::InvalidOption) for a value out of range or one that
    /// contradicts the stored one, and where a log is created below a damaged
    /// [`vellum.toml`](crate::Advice); [`Incompatible`](crate::ErrorKind::Incompatible) where the
    /// path is something other than a log of this version;
    /// [`Unsupported`](crate::ErrorKind::Unsupported) on a filesystem that cannot carry a log, with
    /// the reason; [`Corrupt`](crate::ErrorKind::Corrupt) for damage to what was committed, with
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
