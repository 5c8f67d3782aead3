//! The file `ship`: the state that the shipper needs after a crash. The log does not know its
//! content.
//!
//! **If the process dies here**: the file holds the earlier state; the next save replaces the file
//! with the unfinished name.

use rustix::io::Errno;

use crate::error::OsResult;
use crate::files::names::{SHIP_NAME, UNFINISHED_SHIP_NAME};
use crate::files::small_file;
use crate::log::state::core::Core;
use crate::log::state::place;
use crate::{Error, ErrorKind, Result};

/// Far more than a shipper has to know.
const LEN_MAX: usize = 256 << 10;

/// The state that was saved last; `None` where there is none.
pub(crate) fn load(core: &Core) -> Result<Option<Vec<u8>>> {
    let path = core.files.dir.join(SHIP_NAME);
    match core.files.dir.read(&path, LEN_MAX) {
        Err(Errno::NOENT) => Ok(None),
        answer => answer.map(Some).or_os("read", &path),
    }
}

/// Forgets what was saved; false where nothing was.
pub(crate) fn forget(core: &Core) -> Result<bool> {
    let mut was_there = false;
    for name in [UNFINISHED_SHIP_NAME, SHIP_NAME] {
        let path = core.files.dir.join(name);
        match core.files.dir.unlink(&path) {
            Err(Errno::NOENT) => {}
            answer => was_there |= answer.map(|()| name == SHIP_NAME).or_os("remove", &path)?,
        }
    }
    core.files.dir.sync().or_os("sync", &core.files.dir)?;
    Ok(was_there)
}

/// Replaces what was saved, durably.
pub(crate) fn save(core: &Core, bytes: &[u8]) -> Result<()> {
    if bytes.len() > LEN_MAX {
        let message = format!("{} bytes are to be saved, and {LEN_MAX} at most can", bytes.len());
        return Err(Error::new(ErrorKind::InvalidOption, message).at_path(&core.files.dir));
    }
    // Another log may have taken the place.
    place::require(core)?;
    let files = &core.files;
    let names = [UNFINISHED_SHIP_NAME, SHIP_NAME];
    let what = "write down what is shipped";
    small_file::write(&files.dir, &files.rights, names, bytes, what, |_| Ok(()))?;
    files.dir.sync().or_os("sync", &files.dir)
}
