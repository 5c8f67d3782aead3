//! The part of a log that all its handles in one process share.

use std::fmt;

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::files::Files;
use crate::files::names::{CONTROL_NAME, LOCK_NAME};
use crate::format::control::Geometry;
use crate::log::state::attachment::Attachment;
use crate::log::state::parts::{Choices, Commits, Opened, Ready};
use crate::log::state::watch::Watch;
use crate::segment::kept::KeptFiles;
use crate::segment::prepare::Preparer;
use crate::segment::rights::Rights;
use crate::segment::stage::Stage;
use crate::shared::participants::Outsider;
use crate::shared::region::Region;
use crate::shared::tail_word;
use crate::shared::words::Words;
use crate::sys::Dir;
use crate::sys::filesystem::Filesystem;
use crate::sys::fork::PerProcess;
use crate::{Error, ErrorKind, Fill, Lsn, Options, Result};

/// An open log.
pub(crate) struct Core {
    pub(crate) files: Files,
    pub(crate) ready: Ready,
    pub(crate) commits: Commits,
    pub(crate) choices: Choices,
    pub(crate) opened: Opened,
    /// By what it notices that the log was removed.
    pub(crate) watch: Watch,
    /// The attachment goes before the words it points into.
    pub(crate) writer: Option<Participation>,
    pub(crate) region: Region,
}

/// The resources of a participant in the log, and how it leaves.
pub(crate) struct Participation {
    pub(crate) attachment: PerProcess<Attachment>,
    /// For the last handle of this process; none once it has left.
    pub(crate) leave: Option<fn(&Core, &Attachment) -> Result<()>>,
}

impl Participation {
    /// The attachment, if this process has made it: a child that was forked has none until it
    /// attaches itself.
    pub(crate) fn own(&self) -> Option<&Attachment> {
        self.attachment.is_own().then(|| self.attachment.newest())
    }
}

impl Core {
    #[inline]
    pub(crate) fn words(&self) -> &Words {
        self.region.words()
    }

    /// Refuses words that storage has failed under: others do not see the stores of this process
    /// into them.
    ///
    /// A caller that changes files because of its stores checks in between.
    #[inline]
    pub(crate) fn check_region(&self) -> Result<()> {
        if self.region.is_lost() { Err(self.lost()) } else { Ok(()) }
    }

    /// The error of a process that has lost the control file.
    #[cold]
    pub(crate) fn lost(&self) -> Error {
        let errno = match self.files.dir.try_for_space() {
            Err(errno) if crate::error::FULL.contains(&errno) => errno,
            _ => Errno::IO,
        };
        let operation = "store into the control file, so this process cannot use the log until it \
                         has closed and opened it again";
        Error::os(errno, operation, &self.files.dir.join(CONTROL_NAME))
    }

    /// This process's place among the participants; attaches anew after a fork.
    #[inline]
    pub(crate) fn attachment(&self) -> Result<&Attachment> {
        let attach = || {
            self.check_region()?;
            Attachment::attach_again(&self.files.dir, self.words(), &self.choices.options)
        };
        match &self.writer {
            Some(writer) => writer.attachment.get(|_| attach()),
            None => Err(read_only(self)),
        }
    }

    /// The liveness of the participants, as a process can find it out that is none.
    ///
    /// The lock file is opened each time, because a program may close any descriptor. A process
    /// that may not open it goes by `/proc` alone.
    pub(crate) fn outsider(&self) -> Outsider<'_> {
        let path = self.files.dir.join(LOCK_NAME);
        let lock_file = self.files.dir.open_file(&path, OFlags::RDONLY).ok();
        Outsider { words: self.words(), lock_file }
    }

    pub(crate) fn preparer(&self) -> Preparer<'_> {
        let Files { dir, geometry, rights, .. } = &self.files;
        let (Ready { filesystem, pieces, .. }, room) = (&self.ready, self.room());
        let filesystem = *filesystem;
        Preparer { dir, geometry, filesystem, rights, pieces, room, skips_zeros: false }
    }

    /// Bytes that a segment gets blocks for.
    fn room(&self) -> u64 {
        let policy = self.words().files.policy.load().unwrap_or_default();
        policy.rotate_bytes.map_or(self.files.capacity(), |limit| limit.min(self.files.capacity()))
    }

    /// End of the space that is ready to be stored to.
    pub(crate) fn ready_end(&self) -> Lsn {
        tail_word::ready_end(self.words())
    }

    /// Oldest position still kept.
    pub(crate) fn begin(&self) -> Lsn {
        self.words().begin()
    }

    /// From where on records are in the stage, and not yet in the segments.
    pub(crate) fn stage_begin(&self) -> Option<Lsn> {
        self.commits.stage.as_ref().map(|_| self.words().commits.stage.begin())
    }

    /// Whether records are stored through a mapping.
    #[inline]
    pub(crate) fn has_mapping(&self) -> bool {
        match &self.commits.stage {
            Some(stage) => stage.is_mapped,
            None => self.files.geometry.fill == Fill::Mapped,
        }
    }

    /// Refuses shared words that contradict each other.
    pub(crate) fn check_words(&self) -> Result<()> {
        let words = self.words();
        // Read in this order, because each may grow meanwhile, the later ones first.
        let begin = words.begin().get();
        let tail = tail_word::tail(words).get();
        let allocated = words.allocated_end();
        let order_holds = begin != 0 && begin <= tail && tail <= allocated;
        if !order_holds || !allocated.is_multiple_of(self.files.capacity()) {
            return Err(self.nonsense(format!(
                "begin {begin} ≤ tail {tail} ≤ allocated {allocated} must hold, the last a \
                 multiple of {}",
                self.files.capacity()
            )));
        }
        if !tail.is_multiple_of(self.files.geometry.layout.alignment()) {
            return Err(self.nonsense(format!("no frame ends at the tail, {tail}")));
        }
        Ok(())
    }

    /// An error for shared words that cannot be.
    pub(crate) fn nonsense(&self, what: String) -> Error {
        if self.region.is_lost() {
            return self.lost();
        }
        let message = format!(
            "the control file's shared words make no sense: {what}; when no process uses the log, \
             remove the control file to have it rebuilt from the segments"
        );
        Error::new(ErrorKind::Corrupt, message).at_path(&self.files.dir.join(CONTROL_NAME))
    }
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log").field("dir", &self.files.dir.path()).finish_non_exhaustive()
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        // No caller is left that could get the error.
        let _ = close(self);
    }
}

/// Leaves the log, the first time that it is called; the next opener tidies the rest.
pub(crate) fn close(core: &mut Core) -> Result<()> {
    let leave = core.writer.as_mut().and_then(|writer| writer.leave.take());
    match (core.writer.as_ref().and_then(Participation::own), leave) {
        (Some(attachment), Some(leave)) => {
            core.check_region()?;
            leave(core, attachment)
        }
        _ => Ok(()),
    }
}

/// The segment files that this process keeps open to read single records.
pub(crate) fn kept_files(core: &Core) -> Option<&KeptFiles> {
    let Some(writer) = &core.writer else {
        return core.opened.kept_files.as_ref()?.get(|_| Ok::<_, Errno>(Default::default())).ok();
    };
    writer.own().map(|attachment| &attachment.kept_files)
}

fn read_only(core: &Core) -> Error {
    Error::new(ErrorKind::ReadOnly, "the log was opened for reading only").at_path(&core.files.dir)
}

/// A log with the words of a control file, and the stage that they name.
pub(crate) fn core_with(dir: &Dir, geometry: &Geometry, region: Region) -> Core {
    let stage = geometry.is_staged().then(|| Stage::of(dir, Filesystem::Other(0)));
    Core {
        files: Files::new(dir, geometry, Rights::default()),
        ready: Ready::none(geometry),
        commits: Commits::none(stage),
        choices: Choices::new(&Options::default()),
        opened: Opened::default(),
        watch: Watch::default(),
        writer: None,
        region,
    }
}
