//! One file of the log: making it ready, writing into it, reading from it.

pub(crate) mod file;
pub(crate) mod listing;
pub(crate) mod prepare;
pub(crate) mod stage;

use std::path::Path;

use crate::error::OsResult;
use crate::{Lsn, Result};

/// Ending of the file in which a segment is made before it gets its name.
pub(crate) const UNFINISHED_NAME: &str = "segment.new";
/// Ending of retired segments that wait to be used again.
pub(crate) const SPARE_SUFFIX: &str = ".spare";

/// First positions of the segments in a log's directory, oldest first.
pub(crate) fn list(dir: &Path) -> Result<Vec<Lsn>> {
    Ok(listing::Listing::read(dir)?.firsts())
}

/// Names of the files in a directory.
pub(crate) fn names(dir: &Path) -> Result<Vec<String>> {
    let read = || -> std::io::Result<Vec<String>> {
        let entries = std::fs::read_dir(dir)?;
        entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    };
    read()
        .map_err(|error| rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO))
        .or_os("list the directory", dir)
}
