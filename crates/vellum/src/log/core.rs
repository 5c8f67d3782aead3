//! What every handle of one log in one process shares.

use std::path::PathBuf;
use std::time::Duration;

use crate::format::control::Geometry;
use crate::format::frame::Codec;
use crate::log::attachment::Attachment;
use crate::log::recover::Recovery;
use crate::log::removal::Watch;
use crate::segment::file::{ReadSegment, Segment};
use crate::segment::prepare::Preparer;
use crate::segment::rights::Rights;
use crate::segment::stage::Stage;
use crate::shared::participants::Census;
use crate::shared::primitive::Ordering;
use crate::shared::region::Region;
use crate::shared::words::Words;
use crate::sys::Dir;
use crate::sys::filesystem::Filesystem;
use crate::sys::fork::PerProcess;
use crate::{Error, ErrorKind, Fill, Layout, Lsn, OnFull, OnStageFull, Options, Result};

/// An open log.
pub(crate) struct Core {
    pub(crate) dir: Dir,
    pub(crate) geometry: Geometry,
    pub(crate) codec: Codec,
    pub(crate) filesystem: Filesystem,
    /// Where records wait until they are committed, in a log that stages them.
    pub(crate) stage: Option<Stage>,
    /// Batches are written in blocks of this many bytes.
    pub(crate) block: u64,
    /// What opening had to recover.
    pub(crate) recovery: Option<Recovery>,
    /// The file that advised what the log is made of, where this process created it.
    pub(crate) advice: Option<PathBuf>,
    /// Whose the files are that this process makes.
    pub(crate) rights: Rights,
    /// How far ahead of the tail this process makes pages ready.
    pub(crate) prefault_bytes: u64,
    pub(crate) mapped_bytes_max: u64,
    /// How long this process's calls wait for others.
    pub(crate) timeout: Option<Duration>,
    /// What this process's appends do when there is no space.
    pub(crate) on_full: OnFull,
    /// Segments that the stage may hold when this process makes it longer.
    pub(crate) staged_segments_max: u64,
    /// What this process's appends do when it holds them.
    pub(crate) on_stage_full: OnStageFull,
    /// How this process has opened the log.
    pub(crate) options: Box<Options>,
    /// By what it notices that the log was removed.
    pub(crate) watch: Watch,
    /// The attachment goes before the words it points into.
    pub(crate) writer: Option<PerProcess<Attachment>>,
    pub(crate) region: Region,
}

impl Core {
    #[inline]
    pub(crate) fn words(&self) -> &Words {
        self.region.words()
    }

    /// This process's place among the participants; attaches anew after a fork.
    #[inline]
    pub(crate) fn attachment(&self) -> Result<&Attachment> {
        match &self.writer {
            Some(writer) => writer.get(|_| Attachment::attach_again(self)),
            None => Err(read_only(self)),
        }
    }

    /// What this process can find out about the other participants, if it is one itself.
    pub(crate) fn census<'a>(&'a self, attachment: &'a Attachment) -> Census<'a> {
        Census { words: self.words(), lock_file: attachment.lock_file(), me: attachment.me() }
    }

    pub(crate) fn preparer(&self) -> Preparer<'_> {
        let Core { dir, geometry, filesystem, rights, .. } = self;
        Preparer { dir, geometry, filesystem: *filesystem, rights, room: self.room() }
    }

    /// End of what is ready to be stored to.
    pub(crate) fn ready_end(&self) -> Lsn {
        Lsn::new(self.words().ready_end.load(Ordering::Acquire))
    }

    /// Oldest position still kept.
    pub(crate) fn begin(&self) -> Lsn {
        Lsn::new(self.words().begin.load(Ordering::Acquire))
    }

    pub(crate) fn capacity(&self) -> u64 {
        self.geometry.segment_capacity
    }

    /// First position of the segment that holds `lsn`.
    pub(crate) fn segment_of(&self, lsn: Lsn) -> Lsn {
        Lsn::new(lsn.get() - lsn.get() % self.capacity())
    }

    /// End of the segment that holds `lsn`.
    pub(crate) fn segment_end(&self, lsn: Lsn) -> Lsn {
        Lsn::new(self.segment_of(lsn).get() + self.capacity())
    }

    /// Opens the segment at `first` for storing records, mapped where the log fills by mapping.
    pub(crate) fn open_segment(&self, first: Lsn) -> Result<Segment> {
        match &self.stage {
            Some(stage) => Segment::open_staged(&self.dir, stage, &self.geometry, first),
            None => {
                self.open_file(first, |path| Segment::open(&self.dir, path, &self.geometry, first))
            }
        }
    }

    /// Opens the segment at `first` to store a few bytes.
    pub(crate) fn open_segment_briefly(&self, first: Lsn) -> Result<Segment> {
        match &self.stage {
            Some(_) => self.open_segment(first),
            None => self.open_unmapped(first),
        }
    }

    /// Opens the file of the segment at `first` for writing by system call.
    pub(crate) fn open_unmapped(&self, first: Lsn) -> Result<Segment> {
        self.open_file(first, |path| Segment::open_unmapped(&self.dir, path, &self.geometry, first))
    }

    /// Opens the file of the segment at `first` for reading.
    pub(crate) fn open_to_read(&self, first: Lsn) -> Result<ReadSegment> {
        self.open_file(first, |path| ReadSegment::open(&self.dir, path, &self.geometry, first))
    }

    /// From where on records are in the stage, and not yet in the segments.
    pub(crate) fn stage_begin(&self) -> Option<Lsn> {
        let begin = || Lsn::new(self.words().commits.stage.begin.load(Ordering::SeqCst));
        self.stage.as_ref().map(|_| begin())
    }

    /// Whether lines are written by system calls, so that a file is its text and others may follow it.
    #[inline]
    pub(crate) fn writes_text(&self) -> bool {
        self.geometry.layout == Layout::Text && self.geometry.fill == Fill::Pwrite
    }

    /// Whether records are stored through a mapping.
    #[inline]
    pub(crate) fn has_mapping(&self) -> bool {
        match &self.stage {
            Some(stage) => stage.is_mapped,
            None => self.geometry.fill == Fill::Mapped,
        }
    }

    /// An error for shared words that cannot be.
    pub(crate) fn nonsense(&self, what: String) -> Error {
        let message = format!(
            "the control file's shared words make no sense: {what}; when no process uses the log, \
             remove the control file to have it rebuilt from the segments"
        );
        Error::new(ErrorKind::Corrupt, message).at_path(&self.dir.join(super::CONTROL_NAME))
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        if let Some(writer) = &self.writer
            && writer.is_own()
        {
            // Nobody is left to tell; what could not be tidied is tidied by the next opener.
            let _ = writer.newest().detach(self);
        }
    }
}

fn read_only(core: &Core) -> Error {
    Error::new(ErrorKind::ReadOnly, "the log was opened for reading only").at_path(&core.dir)
}
