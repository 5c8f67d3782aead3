//! One file of the log: writing into it, reading from it; and which files there are.

pub mod kept;
pub mod listing;
pub mod mapped_end;
pub mod open;
pub mod packed;
pub mod rights;
pub mod stage;

use crate::error::OsResult;
use crate::sys::Dir;
use crate::{Lsn, Result};

/// Ending of the file in which a segment is made before it gets its name.
pub const UNFINISHED_NAME: &str = "segment.new";
/// Name under which a stage is made.
pub(crate) const UNFINISHED_STAGE_NAME: &str = "new.stage";
/// Name of a stage that is over and waits to be used again.
pub(crate) const SPARE_STAGE_NAME: &str = "spare.stage";
/// Ending of the files in which records wait until they are committed.
pub const STAGE_SUFFIX: &str = ".stage";
/// Ending of retired segments that wait to be used again.
pub const SPARE_SUFFIX: &str = ".spare";

/// First positions of the segments in a log's directory, oldest first.
pub fn list(dir: &Dir) -> Result<Vec<Lsn>> {
    Ok(listing::Listing::read(dir)?.firsts())
}

/// Names of the files in a directory.
pub fn names(dir: &Dir) -> Result<Vec<String>> {
    #[cfg(test)]
    LISTINGS.set(LISTINGS.get() + 1);
    dir.names().or_os("list the directory", dir)
}

/// Waits until the names in a directory survive a power cut. A process that cannot open it has not
/// failed to sync it.
pub fn sync_names(dir: &Dir) -> Result<()> {
    let what = "sync the names in";
    dir.names_to_sync().or_os(what, dir)?.sync().or_unsynced(what, dir)
}

#[cfg(test)]
thread_local! {
    /// How often this thread has listed a directory.
    pub(crate) static LISTINGS: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}
