//! Finding and opening the files of segments in a running log, whose shared words know the name of
//! the newest one.

use std::path::PathBuf;

use crate::files::open_files;
use crate::files::view::View;
use crate::format::segment::text_file_name;
use crate::log::state::core::Core;
use crate::segment::file::{Segment, UsedStage};
use crate::segment::listing::Listing;
use crate::segment::open::{ReadSegment, WriteSegment};
use crate::shared::files::Newest;
use crate::{Lsn, Result};

impl Core {
    /// Path of the segment at `first`, for messages. If the file is missing or the directory cannot
    /// be listed, a path of the same form.
    pub(crate) fn segment_path(&self, first: Lsn) -> PathBuf {
        open_files::segment_path(self, first)
    }

    /// Path of the segment at `first`, to be opened. If the file is missing, a path of the same
    /// form.
    pub(crate) fn find_segment(&self, first: Lsn) -> Result<PathBuf> {
        self.known_path(first).map_or_else(|| self.files.find_segment(first), Ok)
    }

    /// Path of the segment at `first`, where the shared words know it.
    pub(crate) fn known_path(&self, first: Lsn) -> Option<PathBuf> {
        View::known_path(self, first)
    }

    /// The newest text segment, where the shared words know it.
    pub(crate) fn newest_path(&self) -> Option<(Lsn, PathBuf)> {
        let newest = self.words().files.names.newest()?;
        Some((newest.first, self.path_of(newest)))
    }

    pub(crate) fn path_of(&self, newest: Newest) -> PathBuf {
        let Newest { first, time, is_continuation, .. } = newest;
        self.files.dir.join(text_file_name(time, first, is_continuation))
    }

    /// Opens the segment at `first` for storing records, mapped where the log fills by mapping.
    /// A stage may take its mapping from `used`.
    pub(crate) fn open_segment(&self, first: Lsn, used: &mut Vec<UsedStage>) -> Result<Segment> {
        let (dir, geometry) = (&self.files.dir, &self.files.geometry);
        match &self.commits.stage {
            Some(stage) => Segment::open_staged(dir, stage, geometry, first, used),
            None => self.files.open_found(first, self.known_path(first), |path| {
                Segment::open(dir, path, geometry, first)
            }),
        }
    }

    /// Opens the segment at `first` to store a few bytes.
    pub(crate) fn open_segment_briefly(&self, first: Lsn) -> Result<Segment> {
        match &self.commits.stage {
            Some(_) => self.open_segment(first, &mut Vec::new()),
            None => self.open_unmapped(first).map(Segment::of),
        }
    }

    /// Opens the file of the segment at `first` for writing by system call.
    pub(crate) fn open_unmapped(&self, first: Lsn) -> Result<WriteSegment> {
        self.files.open_unmapped(first, self.known_path(first))
    }

    /// Opens the file of the segment at `first` for reading.
    pub(crate) fn open_to_read(&self, first: Lsn) -> Result<ReadSegment> {
        self.files.open_to_read(first, self.known_path(first))
    }

    /// Refuses shared words by which a framed log begins behind all its files. In a text log files
    /// may be missing.
    pub(crate) fn check_begin(&self) -> Result<()> {
        let files = &self.files;
        if !files.geometry.layout.has_every_segment() {
            return Ok(());
        }
        let begin = self.begin();
        // Nearly always; and there may be thousands of files.
        if files.dir.holds(&self.segment_path(files.segment_of(begin))) {
            return Ok(());
        }
        let newest = Listing::read(&files.dir)?.files.pop().map(|file| file.first);
        let end = newest.map_or(Lsn::new(files.capacity()), |first| files.segment_end(first));
        if begin <= end {
            return Ok(());
        }
        Err(self.nonsense(format!("begin is {begin}, and the newest segment ends at {end}")))
    }
}
