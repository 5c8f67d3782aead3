//! The files of a log: which there are, where a position is in them, opening them.
//!
//! This room, `format` and `segment` are below the wall. Their code knows no shared word and no
//! lock between processes: it cannot name one. Facts about a running log are arguments.

pub mod directory;
pub mod frames;
pub mod gap;
pub mod geometry;
pub mod named;
pub mod names;
pub mod open_files;
pub mod padding;
pub mod raw;
pub mod recover;
pub mod rewrite;
pub mod segments;
pub mod small_file;
pub mod starts;
pub mod text;
pub mod time_index;
pub mod verify;
pub mod view;
pub mod window;

use crate::Lsn;
use crate::format::control::Geometry;
use crate::format::frame::Codec;
use crate::segment::listing::LastListing;
use crate::segment::rights::Rights;
use crate::sys::Dir;

/// The files of one log.
pub struct Files {
    /// Their directory.
    pub dir: Dir,
    /// The geometry of the log.
    pub geometry: Geometry,
    /// Its frames.
    pub codec: Codec,
    /// Owner, group and permissions of the files that this process makes.
    pub rights: Rights,
    /// Where this process has found the closed files of a text log.
    pub(crate) last_listing: LastListing,
}

impl Files {
    /// The files of the log in `dir`, which this process may read.
    pub fn new(dir: &Dir, geometry: &Geometry, rights: Rights) -> Files {
        Files {
            dir: dir.clone(),
            geometry: *geometry,
            codec: Codec::new(geometry.secret),
            rights,
            last_listing: LastListing::default(),
        }
    }

    /// The same files, for another reader.
    pub fn again(&self) -> Files {
        Files::new(&self.dir, &self.geometry, self.rights)
    }

    /// Bytes of log in a segment.
    #[inline]
    pub fn capacity(&self) -> u64 {
        self.geometry.segment_capacity
    }

    /// First position of the segment that holds `lsn`.
    #[inline]
    pub fn segment_of(&self, lsn: Lsn) -> Lsn {
        Lsn::new(lsn.get() - lsn.get() % self.capacity())
    }

    /// End of the segment that holds `lsn`.
    #[inline]
    pub fn segment_end(&self, lsn: Lsn) -> Lsn {
        Lsn::new(self.segment_of(lsn).get() + self.capacity())
    }

    /// Whether lines are written by system calls, so that a file is its text and others may follow
    /// it.
    #[inline]
    pub fn writes_text(&self) -> bool {
        self.geometry.writes_text()
    }
}
