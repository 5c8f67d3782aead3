//! The facts about a log that a reader needs besides its files: a few positions, and the name of
//! the newest file.
//!
//! A running log gives them from its shared words. They change while a reader reads, so each is
//! asked for when it is needed. [`Still`] gives them for files that no process uses.

use std::path::PathBuf;
use std::sync::Arc;

use crate::Lsn;
use crate::files::Files;
use crate::segment::kept::KeptFiles;
use crate::segment::listing::Listing;

/// A log as a reader sees it at this moment.
pub trait View: Send + Sync + 'static {
    /// The files of the log.
    fn files(&self) -> &Files;

    /// Oldest position that is kept.
    fn begin(&self) -> Lsn;

    /// End of the log: the segment of this position is in use.
    fn tail(&self) -> Lsn;

    /// From where on records are in the stage, and not yet in the segments. `None` where all
    /// records are in the segments.
    fn staged_from(&self) -> Option<Lsn>;

    /// The newest text segment and its path, where that is known without listing the directory.
    fn newest(&self) -> Option<(Lsn, PathBuf)>;

    /// How long a text file gets before the log continues in another one, where there is a limit.
    fn text_len_max(&self) -> Option<u64>;

    /// Segment files that stay open from one call to the next.
    fn kept_files(&self) -> Option<&KeptFiles>;

    /// Path of the segment at `first`, where that is known without listing the directory.
    fn known_path(&self, first: Lsn) -> Option<PathBuf> {
        let newest = self.newest().filter(|(newest, _)| *newest == first);
        newest.filter(|_| self.files().geometry.layout.names_have_times()).map(|(_, path)| path)
    }
}

/// Files that no process uses, or of which only closed segments are read.
pub struct Still {
    files: Files,
    /// Where they are, if that is known.
    listing: Arc<Listing>,
    staged_from: Option<Lsn>,
}

impl Still {
    /// Reads all records from the segments.
    pub fn of(files: &Files) -> Arc<Still> {
        Arc::new(Still { files: files.again(), listing: Arc::default(), staged_from: None })
    }

    /// Reads all records from the segments, which are where the listing says.
    pub fn listed(files: &Files, listing: &Arc<Listing>) -> Still {
        Still { files: files.again(), listing: Arc::clone(listing), staged_from: None }
    }

    /// Reads records from the stage where they are at `staged_from` or behind.
    pub fn staged(files: &Files, staged_from: Lsn) -> Arc<Still> {
        Arc::new(Still {
            files: files.again(),
            listing: Arc::default(),
            staged_from: Some(staged_from),
        })
    }
}

impl View for Still {
    fn files(&self) -> &Files {
        &self.files
    }

    fn begin(&self) -> Lsn {
        Lsn::ZERO
    }

    fn tail(&self) -> Lsn {
        Lsn::ZERO
    }

    fn staged_from(&self) -> Option<Lsn> {
        self.staged_from
    }

    fn newest(&self) -> Option<(Lsn, PathBuf)> {
        None
    }

    fn text_len_max(&self) -> Option<u64> {
        None
    }

    fn kept_files(&self) -> Option<&KeptFiles> {
        None
    }

    fn known_path(&self, first: Lsn) -> Option<PathBuf> {
        self.listing.path_of(first)
    }
}
