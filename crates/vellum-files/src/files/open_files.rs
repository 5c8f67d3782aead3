//! The segments that a reader has open.

use std::path::PathBuf;
use std::sync::Arc;

use rustix::io::Errno;

use crate::files::Files;
use crate::files::view::View;
use crate::segment::kept::{KeptFiles, Stamp};
use crate::segment::listing::Listing;
use crate::segment::open::ReadSegment;
use crate::sys::clock;
use crate::{Lsn, Result};

/// Segments that a reader at random positions keeps open.
const AT_RANDOM: usize = 4;
/// Segments that a reader without a trace keeps open: one that is opened again may have pages that
/// the kernel was still reading ahead when it was closed, which would count as cached before.
const WITHOUT_TRACE: usize = 2;

/// The files of a reader.
pub(crate) struct ReadFiles {
    /// Those of a text log as they were listed last: reading all of them takes one listing.
    /// `None` until one is needed.
    listing: Option<Arc<Listing>>,
    /// The newest last.
    open: Vec<Arc<ReadSegment>>,
    /// How many are kept.
    most: usize,
    /// When they are opened, if the log is to keep them open for the next readers.
    kept: Option<Stamp>,
    /// Whether reads of closed segments leave no trace in the page cache.
    leaves_no_trace: bool,
}

impl ReadFiles {
    /// The files of a reader that reads in order.
    pub(crate) fn new() -> ReadFiles {
        let (listing, open) = (None, Vec::new());
        ReadFiles { listing, open, most: 1, kept: None, leaves_no_trace: false }
    }

    /// Those that the log keeps open, in this epoch.
    pub(crate) fn kept(epoch: u64) -> ReadFiles {
        let second = clock::uptime();
        ReadFiles { kept: Some(Stamp { epoch, second }), ..ReadFiles::new() }
    }

    /// The same, of whose closed segments no trace is left.
    pub(crate) fn without_trace() -> ReadFiles {
        ReadFiles { most: WITHOUT_TRACE, leaves_no_trace: true, ..ReadFiles::new() }
    }

    /// Those of a reader that continues in place of this one.
    pub(crate) fn successor(&self) -> ReadFiles {
        if self.leaves_no_trace { ReadFiles::without_trace() } else { ReadFiles::new() }
    }

    /// Keeps more of them from now on, for a reader that jumps back and forth; none that are
    /// trimmed, because they take space as long as they are open.
    pub(crate) fn keep_more(&mut self, view: &dyn View) {
        let begin = view.begin();
        self.open.retain(|segment| view.files().segment_end(segment.first) > begin);
        self.most = AT_RANDOM;
    }

    /// Closes them: there may be others by now.
    pub(crate) fn close(&mut self) {
        self.open.clear();
    }

    /// Closes them, and those that the log keeps open: the program may have closed their
    /// descriptors.
    fn give_up(&mut self, view: &dyn View) {
        self.close();
        view.kept_files().into_iter().for_each(KeptFiles::close);
    }

    /// Reads of the segment at `first`, or of its stage; of a file that is opened anew where the
    /// program has closed the descriptor.
    pub(crate) fn read<T>(
        &mut self,
        view: &dyn View,
        (first, is_staged): (Lsn, bool),
        mut read: impl FnMut(&mut Arc<ReadSegment>) -> Result<T>,
    ) -> Result<T> {
        match self.open(view, first, is_staged).and_then(&mut read) {
            Err(error) if error.raw_os_error() == Some(Errno::BADF.raw_os_error()) => {
                self.give_up(view);
                self.open(view, first, is_staged).and_then(read)
            }
            answer => answer,
        }
    }

    /// The segment at `first`, or its stage.
    fn open(
        &mut self,
        view: &dyn View,
        first: Lsn,
        is_staged: bool,
    ) -> Result<&mut Arc<ReadSegment>> {
        let is_it = |segment: &Arc<ReadSegment>| segment.is_at(first, is_staged);
        if !self.open.last().is_some_and(is_it) {
            let segment = match self.open.iter().position(is_it) {
                Some(index) => self.open.remove(index),
                None => self.open_anew(view, first, is_staged)?,
            };
            self.open.push(segment);
        }
        Ok(self.open.last_mut().expect("was just put there"))
    }

    fn open_anew(
        &mut self,
        view: &dyn View,
        first: Lsn,
        is_staged: bool,
    ) -> Result<Arc<ReadSegment>> {
        let excess = (self.open.len() + 1).saturating_sub(self.most);
        self.open.drain(..excess);
        let kept = self.kept.and_then(|stamp| Some((view.kept_files()?, stamp)));
        if let Some(segment) = kept.and_then(|(files, stamp)| files.get(stamp, first, is_staged)) {
            return Ok(segment);
        }
        let listing = self.listing.get_or_insert_with(|| view.files().last_listing.get());
        let mut segment = match is_staged {
            true => {
                let Files { dir, geometry, .. } = view.files();
                ReadSegment::open_staged(dir, geometry, first)?
            }
            false => open_file(view, listing, first)?,
        };
        if self.leaves_no_trace {
            leave_no_trace(view, &mut segment);
        }
        let segment = Arc::new(segment);
        if let Some((files, stamp)) = kept {
            files.keep(stamp, &segment);
        }
        Ok(segment)
    }
}

/// Has pages that were not in the page cache leave it again, if the segment is closed. The one at
/// the tail is in use.
pub fn leave_no_trace(view: &dyn View, segment: &mut ReadSegment) {
    if !segment.is_staged && view.files().segment_end(segment.first) <= view.tail() {
        segment.leave_no_trace(view.files().capacity());
    }
}

/// Path of the segment at `first`, for messages. If the file is missing or the directory cannot be
/// listed, a path of the same form.
pub fn segment_path(view: &dyn View, first: Lsn) -> PathBuf {
    view.known_path(first).unwrap_or_else(|| view.files().segment_path(first))
}

/// Opens the file of the segment at `first`.
pub fn open_to_read(view: &dyn View, first: Lsn) -> Result<ReadSegment> {
    view.files().open_to_read(first, view.known_path(first))
}

/// Opens the file of the segment at `first`, by the listing if it knows it.
pub fn open_file(view: &dyn View, listing: &mut Arc<Listing>, first: Lsn) -> Result<ReadSegment> {
    let newest = view.newest().map(|(first, _)| first);
    if !view.files().geometry.layout.names_have_times() || newest == Some(first) {
        return open_to_read(view, first);
    }
    if let Some(segment) = open_listed(view, listing, first) {
        return Ok(segment);
    }
    // It was not there when the directory was listed, or was removed or compressed since.
    *listing = Arc::new(Listing::read(&view.files().dir)?);
    if let Some(newest) = newest {
        view.files().last_listing.keep(listing, newest);
    }
    open_listed(view, listing, first).map_or_else(|| open_to_read(view, first), Ok)
}

fn open_listed(view: &dyn View, listing: &Listing, first: Lsn) -> Option<ReadSegment> {
    let path = listing.get(first)?.path.clone();
    ReadSegment::open(&view.files().dir, path, &view.files().geometry, first).ok()
}
