//! Finding and opening the files of segments.

use std::path::PathBuf;

use crate::format::segment::{SegmentHeader, text_file_name};
use crate::log::state::core::Core;
use crate::segment::file::{ReadSegment, Segment, UsedStage};
use crate::segment::listing::{Listing, find, missing};
use crate::shared::files::Newest;
use crate::{Error, ErrorKind, Lsn, Result};

/// How often a file is looked for again that was removed or compressed just before it was opened.
const TRIES: usize = 3;

impl Core {
    /// Path of the segment at `first`, to be told. Where it is missing or cannot be looked for,
    /// what it would look like.
    pub(crate) fn segment_path(&self, first: Lsn) -> PathBuf {
        self.find_segment(first).unwrap_or_else(|_| missing(&self.dir, first))
    }

    /// Path of the segment at `first`, to be opened. Where it is missing, what it would look like.
    pub(crate) fn find_segment(&self, first: Lsn) -> Result<PathBuf> {
        match self.newest_path().filter(|(newest, _)| *newest == first) {
            Some((_, path)) if self.geometry.layout.names_have_times() => Ok(path),
            _ => find(&self.dir, self.geometry.layout, first),
        }
    }

    /// The newest text segment, where the shared words tell.
    pub(crate) fn newest_path(&self) -> Option<(Lsn, PathBuf)> {
        let newest = self.words().files.names.newest()?;
        Some((newest.first, self.path_of(newest)))
    }

    pub(crate) fn path_of(&self, newest: Newest) -> PathBuf {
        let Newest { first, time, is_continuation, .. } = newest;
        self.dir.join(text_file_name(time, first, is_continuation))
    }

    /// Opens the segment at `first` for storing records, mapped where the log fills by mapping.
    /// A stage may take its mapping from `used`.
    pub(crate) fn open_segment(&self, first: Lsn, used: &mut Vec<UsedStage>) -> Result<Segment> {
        match &self.commits.stage {
            Some(stage) => Segment::open_staged(&self.dir, stage, &self.geometry, first, used),
            None => {
                self.open_found(first, |path| Segment::open(&self.dir, path, &self.geometry, first))
            }
        }
    }

    /// Opens the segment at `first` to store a few bytes.
    pub(crate) fn open_segment_briefly(&self, first: Lsn) -> Result<Segment> {
        match &self.commits.stage {
            Some(_) => self.open_segment(first, &mut Vec::new()),
            None => self.open_unmapped(first),
        }
    }

    /// Opens the file of the segment at `first` for writing by system call.
    pub(crate) fn open_unmapped(&self, first: Lsn) -> Result<Segment> {
        self.open_found(first, |path| {
            Segment::open_unmapped(&self.dir, path, &self.geometry, first)
        })
    }

    /// Opens the file of the segment at `first` for reading.
    pub(crate) fn open_to_read(&self, first: Lsn) -> Result<ReadSegment> {
        self.open_found(first, |path| ReadSegment::open(&self.dir, path, &self.geometry, first))
    }

    /// Opens the file of the segment at `first`, looking for it again where it is not there: words
    /// may be stale, and a file may be compressed at this moment.
    pub(crate) fn open_found<T>(
        &self,
        first: Lsn,
        open: impl Fn(PathBuf) -> Result<T>,
    ) -> Result<T> {
        let mut answer = self.find_segment(first).and_then(&open);
        for _ in 1..TRIES {
            if !self.geometry.layout.names_have_times() || !self.is_missing(&answer) {
                break;
            }
            answer = find(&self.dir, self.geometry.layout, first).and_then(&open);
        }
        answer
    }

    /// Refuses shared words by which a framed log begins behind all its files. In a text log files
    /// may be missing.
    pub(crate) fn check_begin(&self) -> Result<()> {
        if !self.geometry.layout.has_every_segment() {
            return Ok(());
        }
        let begin = self.begin();
        // Nearly always; and there may be thousands of files.
        if self.dir.holds(&self.segment_path(self.segment_of(begin))) {
            return Ok(());
        }
        let files = Listing::read(&self.dir)?.files;
        let end =
            files.last().map_or(Lsn::new(self.capacity()), |file| self.segment_end(file.first));
        if begin <= end {
            return Ok(());
        }
        Err(self.nonsense(format!("begin is {begin}, and the newest segment ends at {end}")))
    }

    /// Where to go on behind the segment at `first`, whose file is missing: at the next that is
    /// there, or at `end`.
    pub(crate) fn behind_missing(&self, first: Lsn, end: Lsn) -> Lsn {
        let files = Listing::read(&self.dir).unwrap_or_default().files;
        // A file of another log may begin in the middle of that segment.
        let behind = self.segment_end(first);
        let next = files.iter().map(|file| file.first).find(|next| *next >= behind);
        next.map_or(end, |next| next.min(end))
    }

    /// The last segment before `first`, whose file is missing, of which there is one; else zero.
    pub(crate) fn before_missing(&self, first: Lsn) -> Lsn {
        let files = Listing::read(&self.dir).unwrap_or_default().files;
        let before = files.iter().rev().map(|file| file.first).find(|before| *before < first);
        before.unwrap_or_default()
    }

    /// Whether opening a segment failed because there is no such file.
    pub(crate) fn is_missing<T>(&self, answer: &Result<T, Error>) -> bool {
        answer.as_ref().err().is_some_and(|error| self.is_told_missing(error))
    }

    /// Whether an error is about a file that is not there.
    pub(crate) fn is_told_missing(&self, error: &Error) -> bool {
        error.path().is_some_and(|path| !self.dir.holds(path))
    }
}

/// Refuses files that are no segments of this log; of a framed log, also if one is missing between
/// them. In a text log that is a gap, of which readers tell.
pub(crate) fn check_contiguous(core: &Core, firsts: &[Lsn]) -> Result<()> {
    let capacity = core.capacity();
    for first in firsts {
        if first.get() == 0 || !first.get().is_multiple_of(capacity) {
            let message = format!(
                "the file does not belong here: segments of this log start at multiples of \
                 {capacity}"
            );
            let path = core.segment_path(*first);
            return Err(Error::new(ErrorKind::Corrupt, message).at_path(&path));
        }
    }
    if !core.geometry.layout.has_every_segment() {
        return Ok(());
    }
    for pair in firsts.windows(2) {
        let next = Lsn::new(pair[0].get() + capacity);
        if pair[1] != next {
            // Opening the missing file gives the error.
            core.open_to_read(next)?;
        }
    }
    Ok(())
}

/// The header of the segment at `first`; `None` where it is torn, or no file of this log. What
/// cannot be read is an error: it says nothing of the segment.
pub(crate) fn whole_header(core: &Core, first: Lsn) -> Result<Option<SegmentHeader>> {
    match header(core, first) {
        Ok(header) => Ok(Some(header)),
        Err(error) => match error.kind() {
            ErrorKind::Corrupt | ErrorKind::Incompatible => Ok(None),
            _ => Err(error),
        },
    }
}

pub(crate) fn header(core: &Core, first: Lsn) -> Result<SegmentHeader> {
    let segment = core.open_to_read(first)?;
    let mut bytes = [0; size_of::<SegmentHeader>()];
    let count = segment.read_header(&mut bytes)?;
    let header = SegmentHeader::parse(&bytes[..count]);
    let fault = |reason: &str| {
        Error::new(ErrorKind::Corrupt, format!("the file {reason}")).at_path(&segment.path)
    };
    let header = header.map_err(fault)?;
    if header.secret.get() != core.geometry.secret || header.first.get() != first.get() {
        return Err(fault("is a segment of another log or position"));
    }
    Ok(header)
}
