//! Finding and opening the files of segments.

use std::path::PathBuf;

use crate::files::Files;
use crate::format::segment::SegmentHeader;
use crate::segment::listing::{Listing, find, missing};
use crate::segment::open::{ReadSegment, WriteSegment};
use crate::{Error, ErrorKind, Lsn, Result};

/// How often a file is looked for again that was removed or compressed just before it was opened.
const TRIES: usize = 3;

impl Files {
    /// Path of the segment at `first`, for messages. If the file is missing or the directory cannot
    /// be listed, a path of the same form.
    pub fn segment_path(&self, first: Lsn) -> PathBuf {
        self.find_segment(first).unwrap_or_else(|_| missing(&self.dir, first))
    }

    /// Path of the segment at `first`, to be opened. If the file is missing, a path of the same
    /// form.
    pub fn find_segment(&self, first: Lsn) -> Result<PathBuf> {
        find(&self.dir, self.geometry.layout, first)
    }

    /// Opens the file of the segment at `first` for writing by system call. `path` is its path
    /// where that is known.
    pub fn open_unmapped(&self, first: Lsn, path: Option<PathBuf>) -> Result<WriteSegment> {
        let open = |path| WriteSegment::open(&self.dir, path, &self.geometry, first);
        self.open_found(first, path, open)
    }

    /// Opens the file of the segment at `first` for reading. `path` is its path where that is
    /// known.
    pub fn open_to_read(&self, first: Lsn, path: Option<PathBuf>) -> Result<ReadSegment> {
        self.open_found(first, path, |path| {
            ReadSegment::open(&self.dir, path, &self.geometry, first)
        })
    }

    /// Opens the file of the segment at `first`. If it is not there, looks for it again: the known
    /// path may be old, and another process may compress the file at this moment.
    pub fn open_found<T>(
        &self,
        first: Lsn,
        path: Option<PathBuf>,
        open: impl Fn(PathBuf) -> Result<T>,
    ) -> Result<T> {
        let mut answer = path.map_or_else(|| self.find_segment(first), Ok).and_then(&open);
        for _ in 1..TRIES {
            if !self.geometry.layout.names_have_times() || !self.is_missing(&answer) {
                break;
            }
            answer = self.find_segment(first).and_then(&open);
        }
        answer
    }

    /// Where to continue behind the segment at `first`, whose file is missing: at the next file
    /// that is there, or at `end`.
    pub fn behind_missing(&self, first: Lsn, end: Lsn) -> Lsn {
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
    pub fn is_missing<T>(&self, answer: &Result<T, Error>) -> bool {
        answer.as_ref().err().is_some_and(|error| self.is_told_missing(error))
    }

    /// Whether an error is about a file that is not there.
    pub fn is_told_missing(&self, error: &Error) -> bool {
        error.path().is_some_and(|path| !self.dir.holds(path))
    }

    /// Refuses files that are no segments of this log. In a framed log also refuses a missing
    /// segment between them. In a text log that is a gap, and readers report it.
    pub(crate) fn check_contiguous(&self, firsts: &[Lsn]) -> Result<()> {
        let capacity = self.capacity();
        for first in firsts {
            if first.get() == 0 || !first.get().is_multiple_of(capacity) {
                let message = format!(
                    "the file does not belong here: segments of this log start at multiples of \
                     {capacity}"
                );
                let path = self.segment_path(*first);
                return Err(Error::new(ErrorKind::Corrupt, message).at_path(&path));
            }
        }
        if !self.geometry.layout.has_every_segment() {
            return Ok(());
        }
        for pair in firsts.windows(2) {
            let next = Lsn::new(pair[0].get() + capacity);
            if pair[1] != next {
                // Opening the missing file gives the error.
                self.open_to_read(next, None)?;
            }
        }
        Ok(())
    }

    /// The header of the segment at `first`. `None` where the header is torn, or of another log. A
    /// file that cannot be read is an error: nothing is known of the segment then.
    pub fn whole_header(&self, first: Lsn) -> Result<Option<SegmentHeader>> {
        match self.header(first) {
            Ok(header) => Ok(Some(header)),
            Err(error) => match error.kind() {
                ErrorKind::Corrupt | ErrorKind::Incompatible => Ok(None),
                _ => Err(error),
            },
        }
    }

    /// The header of the segment at `first`.
    pub fn header(&self, first: Lsn) -> Result<SegmentHeader> {
        let segment = self.open_to_read(first, None)?;
        let mut bytes = [0; size_of::<SegmentHeader>()];
        let count = segment.read_header(&mut bytes)?;
        let header = SegmentHeader::parse(&bytes[..count]);
        let fault = |reason: &str| {
            Error::new(ErrorKind::Corrupt, format!("the file {reason}")).at_path(&segment.path)
        };
        let header = header.map_err(fault)?;
        if header.secret.get() != self.geometry.secret || header.first.get() != first.get() {
            return Err(fault("is a segment of another log or position"));
        }
        Ok(header)
    }
}
