//! The segments that a reader has open.

use std::sync::Arc;

use crate::log::state::core::{Core, kept_files};
use crate::segment::file::ReadSegment;
use crate::segment::kept::Stamp;
use crate::segment::listing::Listing;
use crate::sys::clock;
use crate::{Lsn, Result};

/// Segments that who reads at random keeps open.
const AT_RANDOM: usize = 4;

/// The files of a reader.
pub(crate) struct ReadFiles {
    /// Those of a text log as they were listed last: reading all of them takes one listing.
    /// `None` until one is needed.
    listing: Option<Arc<Listing>>,
    /// The newest last.
    open: Vec<Arc<ReadSegment>>,
    /// How many are kept.
    most: usize,
    /// When they are opened, if the log is to keep them open for those who come next.
    kept: Option<Stamp>,
}

impl ReadFiles {
    pub(crate) fn new() -> ReadFiles {
        ReadFiles { listing: None, open: Vec::new(), most: 1, kept: None }
    }

    /// Those that the log keeps open, in this epoch.
    pub(crate) fn kept(epoch: u64) -> ReadFiles {
        let second = clock::uptime();
        ReadFiles { kept: Some(Stamp { epoch, second }), ..ReadFiles::new() }
    }

    /// Keeps more of them from now on, for who goes to and fro; none that are trimmed, because they
    /// take space as long as they are open.
    pub(crate) fn keep_more(&mut self, core: &Core) {
        let begin = core.begin();
        self.open.retain(|segment| core.segment_end(segment.first) > begin);
        self.most = AT_RANDOM;
    }

    /// Closes them: there may be others by now.
    pub(crate) fn close(&mut self) {
        self.open.clear();
    }

    /// The segment at `first`, or its stage.
    pub(crate) fn open(
        &mut self,
        core: &Core,
        first: Lsn,
        is_staged: bool,
    ) -> Result<&mut Arc<ReadSegment>> {
        let is_it = |segment: &Arc<ReadSegment>| segment.is_at(first, is_staged);
        if !self.open.last().is_some_and(is_it) {
            let segment = match self.open.iter().position(is_it) {
                Some(index) => self.open.remove(index),
                None => self.open_anew(core, first, is_staged)?,
            };
            self.open.push(segment);
        }
        Ok(self.open.last_mut().expect("was just put there"))
    }

    fn open_anew(&mut self, core: &Core, first: Lsn, is_staged: bool) -> Result<Arc<ReadSegment>> {
        let excess = (self.open.len() + 1).saturating_sub(self.most);
        self.open.drain(..excess);
        let kept = self.kept.and_then(|stamp| Some((kept_files(core)?, stamp)));
        if let Some(segment) = kept.and_then(|(files, stamp)| files.get(stamp, first, is_staged)) {
            return Ok(segment);
        }
        let listing = self.listing.get_or_insert_with(|| core.ready.last_listing.get());
        let segment = Arc::new(match &core.commits.stage {
            Some(stage) if is_staged => ReadSegment::open_staged(stage, &core.geometry, first)?,
            _ => open_file(core, listing, first)?,
        });
        if let Some((files, stamp)) = kept {
            files.keep(stamp, &segment);
        }
        Ok(segment)
    }
}

/// Opens the file of the segment at `first`, by the listing if it knows it.
pub(crate) fn open_file(
    core: &Core,
    listing: &mut Arc<Listing>,
    first: Lsn,
) -> Result<ReadSegment> {
    let newest = core.words().files.names.newest().map(|newest| newest.first);
    if !core.geometry.layout.names_have_times() || newest == Some(first) {
        return core.open_to_read(first);
    }
    if let Some(segment) = open_listed(core, listing, first) {
        return Ok(segment);
    }
    // It was not there when the directory was listed, or was removed or compressed since.
    *listing = Arc::new(Listing::read(&core.dir)?);
    if let Some(newest) = newest {
        core.ready.last_listing.keep(listing, newest);
    }
    open_listed(core, listing, first).map_or_else(|| core.open_to_read(first), Ok)
}

fn open_listed(core: &Core, listing: &Listing, first: Lsn) -> Option<ReadSegment> {
    let path = listing.get(first)?.path.clone();
    ReadSegment::open(&core.dir, path, &core.geometry, first).ok()
}
