//! Options that a log works well without: its speed, and its use of memory and disk.

use std::path::{Path, PathBuf};

use crate::Result;
use crate::options::choice::{Fill, Layout, OnStageFull, Preallocate};
use crate::options::commit_path::CommitPath;
use crate::options::policy::OnFull;

/// How fast a log is, and how much memory and disk it uses: a builder, for
/// [`Options::tuning`](crate::Options::tuning).
///
/// A choice that is left out is taken from a measurement, if the program says where to find one
/// ([`advice_from`](Tuning::advice_from)), and else from the kind of filesystem.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("app.wal");
/// use vellum::{Options, Tuning};
///
/// let tuning = Tuning::new().segment_capacity_bytes(64 << 20).staged_segments_max(4);
/// let log = Options::wal().tuning(tuning).open(&path)?;
/// # Ok::<(), vellum::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Tuning {
    pub(crate) segment_capacity_bytes: Option<u64>,
    pub(crate) preallocate: Option<Preallocate>,
    pub(crate) fill: Option<Fill>,
    pub(crate) prefault_bytes: Option<u64>,
    pub(crate) mapped_bytes_max: Option<u64>,
    pub(crate) staged_segments_max: Option<u64>,
    pub(crate) spare_segments_max: Option<u64>,
    pub(crate) on_stage_full: Option<OnStageFull>,
    pub(crate) on_full: Option<OnFull>,
    pub(crate) commit_path: Option<CommitPath>,
    pub(crate) checkpoint_after_bytes: Option<u64>,
    pub(crate) advice_from: Option<AdviceSource>,
}

impl Tuning {
    /// Leaves everything out.
    pub fn new() -> Tuning {
        Tuning::default()
    }

    /// Bytes of log a segment file of a new log holds: a multiple of the page size from 4 KiB to
    /// 1 GiB. Default: 64 MiB, or 16 MiB where records are staged. A log that is there keeps its
    /// own.
    pub fn segment_capacity_bytes(mut self, bytes: u64) -> Tuning {
        self.segment_capacity_bytes = Some(bytes);
        self
    }

    /// How file space of a new log is made ready ahead of need. Default: [`Preallocate::Auto`]. A
    /// log that is there keeps its own.
    pub fn preallocate(mut self, preallocate: Preallocate) -> Tuning {
        self.preallocate = Some(preallocate);
        self
    }

    /// How records are written to the segment files of a new log. Default: [`Fill::Mapped`] where
    /// mapping is safe, [`Fill::Pwrite`] on filesystems where it is not. A log that is there keeps
    /// its own.
    pub fn fill(mut self, fill: Fill) -> Tuning {
        self.fill = Some(fill);
        self
    }

    /// How far ahead of the tail this process makes pages ready at most, in bytes: a multiple of
    /// 4096, at least one page. Default: 1 MiB, or a segment where that is less. It makes as much
    /// ready as the log takes in a millisecond, 16 KiB at least. In a framed log, space further
    /// ahead is made ready for long records: 256 of them, up to 16 MiB.
    ///
    /// Other tools see the ready bytes of a mapped text log as NULs behind the text, and none once
    /// it is closed. A log that is filled by [`Fill::Pwrite`] has none.
    pub fn prefault_bytes(mut self, bytes: u64) -> Tuning {
        self.prefault_bytes = Some(bytes);
        self
    }

    /// Address space this process may use for mapped segments, in bytes. Default: 256 MiB. At
    /// least one segment is always mapped, and one more for each append in progress at the same
    /// moment; the log's length plays no part.
    pub fn mapped_bytes_max(mut self, bytes: u64) -> Tuning {
        self.mapped_bytes_max = Some(bytes);
        self
    }

    /// Segments that may hold records which are not durable, in a [staged](Fill::Staged) log.
    /// Default: 3, at least 2. The append that needs one more commits first, or gets the error that
    /// [`on_stage_full`](Tuning::on_stage_full) chooses.
    ///
    /// Records that cannot be committed yet, because an append before them is in progress, do not
    /// count, nor does the room that a commit needs for itself. Belongs to this process: each keeps
    /// to its own limit.
    pub fn staged_segments_max(mut self, segments: u64) -> Tuning {
        self.staged_segments_max = Some(segments);
        self
    }

    /// Segments that may wait for new records behind a [trim](crate::Log::trim) by this process, or
    /// a removal by its policy: those that are ready already, and those that are kept of the
    /// removed ones. The default is the most: 8 in a [staged](Fill::Staged) log, 1 with
    /// [`Preallocate::Recycle`](crate::Preallocate::Recycle), none elsewhere.
    ///
    /// With 0 all removed ones are given back to the disk, also while the log ships. The next
    /// segment is made anew then, at the cost that [`append`](crate::Log::append) names. Segments
    /// that are ready already are given back by [`release_prepared`](crate::Log::release_prepared).
    pub fn spare_segments_max(mut self, segments: u64) -> Tuning {
        self.spare_segments_max = Some(segments);
        self
    }

    /// The behaviour of an append when [`staged_segments_max`](Tuning::staged_segments_max)
    /// segments hold records that are not durable. Default: [`OnStageFull::Commit`].
    pub fn on_stage_full(mut self, answer: OnStageFull) -> Tuning {
        self.on_stage_full = Some(answer);
        self
    }

    /// The choice of this process's appends when there is no space. Default: [`OnFull::Error`].
    ///
    /// [`OnFull::Drop`] is for text logs, and for [`append`](crate::Log::append) and
    /// [`append_vectored`](crate::Log::append_vectored) alone: a reservation or a batch gets the
    /// error. Space is that of the filesystem and of quotas; a limit on the size of the process's
    /// files stays an error.
    pub fn on_full(mut self, on_full: OnFull) -> Tuning {
        self.on_full = Some(on_full);
        self
    }

    /// How this process brings commit groups to the device, in a [staged](Fill::Staged) log.
    /// Default: the path that was stored for this device
    /// ([`CommitPath::store_chosen`](crate::CommitPath::store_chosen)), and else one by its kind.
    ///
    /// # Durability
    ///
    /// A block that is smaller than the device's physical sector makes the device read, change and
    /// write the sector. A power cut in the middle may destroy durable records beside those that
    /// are written. The default never does that; this path is followed as it is. A block that the
    /// filesystem does not take is made larger.
    pub fn commit_path(mut self, path: CommitPath) -> Tuning {
        self.commit_path = Some(path);
        self
    }

    /// Bytes of log behind the checkpoint after which the next one is
    /// [due](crate::Checkpoint::is_due). 0 is never, the default.
    ///
    /// The log makes no checkpoint by itself: only its user knows which records to keep. It says
    /// when it is time ([`Checkpoint::is_due`](crate::Checkpoint::is_due),
    /// [`Checkpoint::event`](crate::Checkpoint::event)), so that neither the recovery nor the log
    /// grows without limit. Counted from the checkpoint, in bytes of log with headers and padding,
    /// of all writers. Belongs to this process. A text log has no checkpoint, and nothing is ever
    /// due in it.
    pub fn checkpoint_after_bytes(mut self, bytes: u64) -> Tuning {
        self.checkpoint_after_bytes = Some(bytes);
        self
    }

    /// Where to find a tuning for a new log. Default: nowhere.
    ///
    /// `source` is called when a log is created. `vellum_advice::nearest` is one: it reads the
    /// nearest `vellum.toml` above the log. An error of the source is that of opening.
    ///
    /// Of its tuning count `segment_capacity_bytes`, `preallocate`, `fill` and `prefault_bytes`,
    /// where the program has not chosen them. A log that exists is never changed, and the source is
    /// not called for it.
    pub fn advice_from(mut self, source: AdviceSource) -> Tuning {
        self.advice_from = Some(source);
        self
    }

    /// This, and the choices of `other` that are left out here.
    pub(crate) fn or(self, other: Tuning) -> Tuning {
        Tuning {
            segment_capacity_bytes: self.segment_capacity_bytes.or(other.segment_capacity_bytes),
            preallocate: self.preallocate.or(other.preallocate),
            fill: self.fill.or(other.fill),
            prefault_bytes: self.prefault_bytes.or(other.prefault_bytes),
            mapped_bytes_max: self.mapped_bytes_max.or(other.mapped_bytes_max),
            staged_segments_max: self.staged_segments_max.or(other.staged_segments_max),
            spare_segments_max: self.spare_segments_max.or(other.spare_segments_max),
            on_stage_full: self.on_stage_full.or(other.on_stage_full),
            on_full: self.on_full.or(other.on_full),
            commit_path: self.commit_path.or(other.commit_path),
            checkpoint_after_bytes: self.checkpoint_after_bytes.or(other.checkpoint_after_bytes),
            advice_from: self.advice_from.or(other.advice_from),
        }
    }
}

/// Finds a tuning for a log that is about to be created, and the file that it is from; `None` where
/// there is none.
///
/// The crate `vellum-advice` has one: `vellum_advice::nearest`.
pub type AdviceSource = fn(&NewLog<'_>) -> Result<Option<(PathBuf, Tuning)>>;

/// A log that is about to be created, and the choices of the program for it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct NewLog<'a> {
    /// The directory of the log, which need not exist.
    pub dir: &'a Path,
    /// How records are laid out in the segments.
    pub layout: Layout,
    /// Whether the program wants the records staged.
    pub is_staged: bool,
    /// Whether the log may be filled through a mapping: a full disk cannot kill the process by it,
    /// and the program has chosen nothing that a mapping contradicts.
    pub may_be_mapped: bool,
    /// [`Tuning::fill`] of the program.
    pub fill: Option<Fill>,
    /// [`Tuning::preallocate`] of the program.
    pub preallocate: Option<Preallocate>,
}
