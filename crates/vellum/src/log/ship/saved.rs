//! The file `ship`: the state that the shipper needs after a crash. The log does not know its
//! content.
//!
//! **If the process dies here**: the file holds the earlier state; the next save replaces the file
//! with the unfinished name.

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::error::OsResult;
use crate::files::Files;
use crate::files::names::{SHIP_FIGURES_NAME, SHIP_NAME, UNFINISHED_SHIP_NAME};
use crate::files::small_file;
use crate::log::state::core::Core;
use crate::log::state::place;
use crate::{Error, ErrorKind, Result, sys};

/// Far more than a shipper has to know.
const LEN_MAX: usize = 256 << 10;

/// More than figures take.
const FIGURES_LEN_MAX: usize = 4096;

/// The state that was saved last; `None` where there is none.
pub(crate) fn load(files: &Files) -> Result<Option<Vec<u8>>> {
    read(files, SHIP_NAME, LEN_MAX)
}

/// The figures that were stored last; `None` where none were.
pub(crate) fn figures(files: &Files) -> Result<Option<Vec<u8>>> {
    read(files, SHIP_FIGURES_NAME, FIGURES_LEN_MAX)
}

fn read(files: &Files, name: &str, len_max: usize) -> Result<Option<Vec<u8>>> {
    let path = files.dir.join(name);
    match files.dir.read(&path, len_max) {
        Err(Errno::NOENT) => Ok(None),
        answer => answer.map(Some).or_os("read", &path),
    }
}

/// Stores figures in their place: a reader may see them half written, and a power cut may take them
/// back.
pub(crate) fn set_figures(files: &Files, bytes: &[u8]) -> Result<()> {
    check_len(files, bytes, FIGURES_LEN_MAX)?;
    let (path, what) = (files.dir.join(SHIP_FIGURES_NAME), "store the figures of shipping in");
    sys::file::check_size_limit(bytes.len() as u64).or_os(what, &path)?;
    let fd = match files.dir.open_file(&path, OFlags::RDWR) {
        Err(Errno::NOENT) => files.rights.create(&files.dir, &path, what)?,
        answer => answer.or_os(what, &path)?,
    };
    sys::file::write_all_at(&fd, bytes, 0).or_os(what, &path)
}

fn check_len(files: &Files, bytes: &[u8], len_max: usize) -> Result<()> {
    if bytes.len() <= len_max {
        return Ok(());
    }
    let message = format!("{} bytes are to be saved, and {len_max} at most can", bytes.len());
    Err(Error::new(ErrorKind::InvalidOption, message).at_path(&files.dir))
}

/// Forgets what was saved; false where nothing was.
pub(crate) fn forget(core: &Core) -> Result<bool> {
    let mut was_there = false;
    for name in [UNFINISHED_SHIP_NAME, SHIP_FIGURES_NAME, SHIP_NAME] {
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
    check_len(&core.files, bytes, LEN_MAX)?;
    // Another log may have taken the place.
    place::require(core)?;
    let files = &core.files;
    let names = [UNFINISHED_SHIP_NAME, SHIP_NAME];
    let what = "write down what is shipped";
    small_file::write(&files.dir, &files.rights, names, bytes, what, |_| Ok(()))?;
    files.dir.sync().or_os("sync", &files.dir)
}
