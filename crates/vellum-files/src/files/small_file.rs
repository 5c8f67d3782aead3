//! A small file of the log: written under an unfinished name, synced, and named.
//!
//! **If the process dies here**: the name has the file of before, or none. The unfinished file
//! counts for nothing, and the next writer replaces it.

use std::os::fd::OwnedFd;

use crate::Result;
use crate::error::OsResult;
use crate::segment::rights::Rights;
use crate::sys::{self, Dir};

/// Writes the file `name`, by way of the file `unfinished`, so that the name means the whole file
/// after a power cut too. `complete` changes the file before it is synced. The caller syncs the
/// directory. `what` is for errors.
pub fn write(
    dir: &Dir,
    rights: &Rights,
    [unfinished, name]: [&str; 2],
    bytes: &[u8],
    what: &str,
    complete: impl FnOnce(&OwnedFd) -> Result<()>,
) -> Result<OwnedFd> {
    let (unfinished, path) = (dir.join(unfinished), dir.join(name));
    sys::file::check_size_limit(bytes.len() as u64).or_os(what, dir)?;
    let fd = rights.create(dir, &unfinished, what)?;
    // Otherwise storing into the file again takes space on btrfs, which a full disk does not have.
    sys::file::overwrite_in_place(&fd);
    let written = sys::file::write_all_at(&fd, bytes, 0)
        .or_os(what, &path)
        .and_then(|()| complete(&fd))
        .and_then(|()| sys::sync::sync(&fd).or_unsynced(what, &path))
        .and_then(|()| dir.rename(&unfinished, &path).or_os(what, &path));
    if written.is_err() {
        let _ = dir.unlink(&unfinished);
    }
    written.map(|()| fd)
}
