//! The parts of an open log, by their users.

use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use crate::format::control::Geometry;
use crate::format::identity::Identity;
use crate::identity::Recovery;
use crate::log::commit::trigger::Trigger;
use crate::options::limits::{
    MAPPED_BYTES_MAX_DEFAULT, PREFAULT_BYTES_DEFAULT, STAGED_SEGMENTS_MAX_DEFAULT,
};
use crate::segment::groups::Groups;
use crate::segment::kept::KeptFiles;
use crate::segment::pace::Pace;
use crate::segment::pieces::Pieces;
use crate::segment::stage::Stage;
use crate::segment::window::Window;
use crate::sys::filesystem::Filesystem;
use crate::sys::fork::PerProcess;
use crate::{CommitPath, OnFull, OnStageFull, Options, Tuning, knowledge};

/// How this process makes room in the log.
pub(crate) struct Ready {
    pub(crate) filesystem: Filesystem,
    /// How large the pieces are in which this process writes zeros.
    pub(crate) pieces: Pieces,
    /// How this process slows down where memory is full of pages that the device has not got yet.
    pub(crate) pace: Pace,
    /// How long the commit groups were since this process made its last segment.
    pub(crate) groups: Groups,
    /// How far ahead of the tail this process makes pages ready.
    pub(crate) window: Window,
    /// This process has given blocks up to here to the files that long records are written to.
    pub(crate) blocks_end: AtomicU64,
    pub(crate) mapped_bytes_max: u64,
    /// Trimmed segments to keep, where the program says so.
    pub(crate) spares_max: Option<u64>,
}

/// How commit groups get to the device.
pub(crate) struct Commits {
    /// Where records wait until they are committed, in a log that stages them.
    pub(crate) stage: Option<Stage>,
    /// The way of staged records.
    pub(crate) commit_path: CommitPath,
    /// Groups are written in blocks of this many bytes.
    pub(crate) block: u64,
    /// When a checkpoint is due, and the event for it.
    pub(crate) trigger: Trigger,
}

/// The choices of this process for its own calls.
pub(crate) struct Choices {
    /// How long calls wait for others.
    pub(crate) timeout: Option<Duration>,
    /// The behaviour of appends when there is no space.
    pub(crate) on_full: OnFull,
    /// Segments that the stage may hold when this process makes it longer.
    pub(crate) staged_segments_max: u64,
    /// The behaviour of appends when the stage is full.
    pub(crate) on_stage_full: OnStageFull,
    /// How this process has opened the log.
    pub(crate) options: Box<Options>,
}

/// Findings of opening the log.
#[derive(Default)]
pub(crate) struct Opened {
    /// The recovery, if one was needed.
    pub(crate) recovery: Option<Recovery>,
    /// The log's identity then.
    pub(crate) identity: Option<Identity>,
    /// The epoch of the positions that this process was given: the one in which it has opened the
    /// log, or began itself since.
    pub(crate) epoch: AtomicU64,
    /// The file that advised what the log is made of, where this process created it.
    pub(crate) advice: Option<PathBuf>,
    /// Files that a log that was opened for reading keeps open; a writer's are in its attachment.
    pub(crate) kept_files: Option<PerProcess<KeptFiles>>,
}

impl Ready {
    pub(crate) fn new(filesystem: Filesystem, options: &Options, geometry: &Geometry) -> Ready {
        let prefault_bytes = options.tuning.prefault_bytes.unwrap_or(PREFAULT_BYTES_DEFAULT);
        Ready {
            filesystem,
            pieces: Pieces::default(),
            pace: Pace::default(),
            groups: Groups::default(),
            blocks_end: AtomicU64::default(),
            window: Window::new(prefault_bytes.min(geometry.segment_capacity)),
            mapped_bytes_max: options.tuning.mapped_bytes_max.unwrap_or(MAPPED_BYTES_MAX_DEFAULT),
            spares_max: options.tuning.spare_segments_max,
        }
    }

    /// Of a process that only reads files.
    pub(crate) fn none(geometry: &Geometry) -> Ready {
        let options = Options::default().tuning(Tuning::new().mapped_bytes_max(0));
        Ready::new(Filesystem::Other(0), &options, geometry)
    }
}

impl Commits {
    /// Of a log that is made so; `path` is for one that stages its records.
    pub(crate) fn new(
        stage: Option<Stage>,
        path: impl FnOnce() -> CommitPath,
        options: &Options,
    ) -> Commits {
        let commit_path = if stage.is_some() { path() } else { knowledge::commit_path(1) };
        let block = if stage.is_some() { commit_path.block_bytes } else { 1 };
        Commits {
            stage,
            commit_path,
            block,
            trigger: Trigger::new(options.tuning.checkpoint_after_bytes),
        }
    }

    /// Of a process that only reads files.
    pub(crate) fn none(stage: Option<Stage>) -> Commits {
        let (commit_path, trigger) = (knowledge::commit_path(1), Trigger::default());
        Commits { stage, commit_path, block: 1, trigger }
    }

    /// Groups that may be on their way at the same time.
    pub(crate) fn lanes(&self) -> usize {
        if self.stage.is_some() { self.commit_path.lanes as usize } else { 1 }
    }
}

impl Choices {
    pub(crate) fn new(options: &Options) -> Choices {
        Choices {
            timeout: options.timeout,
            on_full: options.tuning.on_full.unwrap_or_default(),
            staged_segments_max: options
                .tuning
                .staged_segments_max
                .unwrap_or(STAGED_SEGMENTS_MAX_DEFAULT),
            on_stage_full: options.tuning.on_stage_full.unwrap_or_default(),
            options: Box::new(options.clone()),
        }
    }
}
