//! One file of the log: making it ready, writing into it, reading from it.

pub(crate) mod file;
pub(crate) mod groups;
pub(crate) mod kept;
pub(crate) mod listing;
pub(crate) mod mapped_end;
pub(crate) mod open;
pub(crate) mod pace;
pub(crate) mod packed;
pub(crate) mod pieces;
pub(crate) mod prepare;
pub(crate) mod rights;
pub(crate) mod stage;
pub(crate) mod target;
pub(crate) mod window;
pub(crate) mod zeroed_file;

use crate::error::OsResult;
use crate::sys::Dir;
use crate::{Lsn, Result};

/// Ending of the file in which a segment is made before it gets its name.
pub(crate) const UNFINISHED_NAME: &str = "segment.new";
/// Name under which a stage is made.
pub(crate) const UNFINISHED_STAGE_NAME: &str = "new.stage";
/// Name of a stage that is over and waits to be used again.
pub(crate) const SPARE_STAGE_NAME: &str = "spare.stage";
/// Ending of the files in which records wait until they are committed.
pub(crate) const STAGE_SUFFIX: &str = ".stage";
/// Ending of retired segments that wait to be used again.
pub(crate) const SPARE_SUFFIX: &str = ".spare";

/// First positions of the segments in a log's directory, oldest first.
pub(crate) fn list(dir: &Dir) -> Result<Vec<Lsn>> {
    Ok(listing::Listing::read(dir)?.firsts())
}

/// Names of the files in a directory.
pub(crate) fn names(dir: &Dir) -> Result<Vec<String>> {
    dir.names().or_os("list the directory", dir)
}

/// Waits until the names in a directory survive a power cut. A process that cannot open it has not
/// failed to sync it.
pub(crate) fn sync_names(dir: &Dir) -> Result<()> {
    let what = "sync the names in";
    dir.names_to_sync().or_os(what, dir)?.sync().or_unsynced(what, dir)
}
