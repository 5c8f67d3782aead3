//! The files of a log: which there are, where a position is in them, opening them.
//!
//! This room, `format` and `segment` are below the wall. Their code knows no shared word and no
//! lock between processes: it cannot name one. Facts about a running log are arguments.

pub(crate) mod frames;
pub(crate) mod names;
pub(crate) mod open_files;
pub(crate) mod padding;
pub(crate) mod recover;
pub(crate) mod rewrite;
pub(crate) mod segments;
pub(crate) mod starts;
pub(crate) mod text;
pub(crate) mod view;
pub(crate) mod window;

use crate::Lsn;
use crate::format::control::Geometry;
use crate::format::frame::Codec;
use crate::segment::listing::LastListing;
use crate::segment::rights::Rights;
use crate::sys::Dir;

/// The files of one log.
pub(crate) struct Files {
    pub(crate) dir: Dir,
    pub(crate) geometry: Geometry,
    pub(crate) codec: Codec,
    /// Whose the files are that this process makes.
    pub(crate) rights: Rights,
    /// Where this process has found the closed files of a text log.
    pub(crate) last_listing: LastListing,
}

impl Files {
    /// The files of the log in `dir`, which this process may read.
    pub(crate) fn new(dir: &Dir, geometry: &Geometry, rights: Rights) -> Files {
        Files {
            dir: dir.clone(),
            geometry: *geometry,
            codec: Codec::new(geometry.secret),
            rights,
            last_listing: LastListing::default(),
        }
    }

    /// The same files, for another reader.
    pub(crate) fn again(&self) -> Files {
        Files::new(&self.dir, &self.geometry, self.rights)
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

    /// Whether lines are written by system calls, so that a file is its text and others may follow
    /// it.
    #[inline]
    pub(crate) fn writes_text(&self) -> bool {
        self.geometry.writes_text()
    }
}
