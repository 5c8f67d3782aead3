//! The segments that a reader has open.

use std::sync::Arc;

use crate::log::state::core::Core;
use crate::segment::file::ReadSegment;
use crate::segment::listing::Listing;
use crate::{Lsn, Result};

/// Segments that who reads at random keeps open.
const AT_RANDOM: usize = 4;

/// The files of a reader.
pub(crate) struct ReadFiles {
    /// Those of a text log as they were listed last: reading all of them takes one listing.
    listing: Arc<Listing>,
    /// The newest last.
    open: Vec<ReadSegment>,
    /// How many are kept.
    most: usize,
}

impl ReadFiles {
    pub(crate) fn new(core: &Core) -> ReadFiles {
        ReadFiles { listing: core.ready.last_listing.get(), open: Vec::new(), most: 1 }
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
    ) -> Result<&mut ReadSegment> {
        let is_it =
            |segment: &ReadSegment| segment.first == first && segment.is_staged == is_staged;
        if !self.open.last().is_some_and(is_it) {
            let segment = match self.open.iter().position(is_it) {
                Some(index) => self.open.remove(index),
                None => self.open_anew(core, first, is_staged)?,
            };
            self.open.push(segment);
        }
        Ok(self.open.last_mut().expect("was just put there"))
    }

    fn open_anew(&mut self, core: &Core, first: Lsn, is_staged: bool) -> Result<ReadSegment> {
        let excess = (self.open.len() + 1).saturating_sub(self.most);
        self.open.drain(..excess);
        match &core.commits.stage {
            Some(stage) if is_staged => ReadSegment::open_staged(stage, &core.geometry, first),
            _ => open_file(core, &mut self.listing, first),
        }
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
