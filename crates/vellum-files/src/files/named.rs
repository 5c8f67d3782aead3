//! Which directory a path names. A text log may be at the path of a file, where people and tools
//! expect one: `app.log` is then a link to `app.log.d/current`, and each of the two is its name.
//!
//! **If the process dies here**: the link is made last, and made again within a second by another
//! writer, or by the next opener with the same option.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::files::names::{CONTROL_NAME, CURRENT_NAME, GEOMETRY_NAME};
use crate::sys::file::directory_of;

/// The end of the directory's name, behind the name of the link.
const SUFFIX: &str = ".d";
/// No name is longer. Where the directory's would be, the directory has the path itself.
const NAME_BYTES_MAX: usize = 255;
/// So many links from one to the next are followed, as the kernel does.
const LINKS_MAX: usize = 40;

/// The directory of the log that `path` names; `makes_link` says that a new one is to have a link.
pub fn directory(path: &Path, makes_link: bool) -> PathBuf {
    let Some(target) = target_of_link(path) else { return path.to_path_buf() };
    match linked(path) {
        Some(directory) => directory,
        None if fs::metadata(path).is_ok() => path.to_path_buf(),
        None if makes_link || holds_log(&target) => target,
        None => path.to_path_buf(),
    }
}

/// Makes the link to the log in `directory`, if that has the name for it. Anything else at the path
/// stays, but for a link that leads to a log that is gone. A link is a convenience: where none can
/// be made the log works without.
pub fn make_link(directory: &Path) {
    let Some((link, name)) = link(directory).zip(directory.file_name()) else { return };
    let target = Path::new(name).join(CURRENT_NAME);
    match fs::read_link(&link) {
        Ok(found) if found == target => return,
        Ok(found) if found.file_name() == target.file_name() && linked(&link).is_none() => {
            let _ = fs::remove_file(&link);
        }
        _ => {}
    }
    let _ = symlink(target, link);
}

/// Where the link to the log in `directory` is, if that has the name for one.
pub fn link(directory: &Path) -> Option<PathBuf> {
    let name = directory.file_name()?.as_bytes().strip_suffix(SUFFIX.as_bytes())?;
    (!name.is_empty()).then(|| directory.with_file_name(OsStr::from_bytes(name)))
}

/// Whether the link is there that leads to the log in `directory`.
pub fn has_link(directory: &Path) -> bool {
    let led_to = link(directory).and_then(|link| linked(&link));
    led_to.is_some_and(|led_to| led_to.file_name() == directory.file_name())
}

/// Where the log of a link at `path` is. A path that ends with `/` is that of a directory.
fn target_of_link(path: &Path) -> Option<PathBuf> {
    let mut name = path.file_name()?.to_os_string();
    name.push(SUFFIX);
    let is_file = !path.as_os_str().as_bytes().ends_with(b"/");
    (is_file && name.len() <= NAME_BYTES_MAX).then(|| path.with_file_name(name))
}

/// The directory whose `current` a link leads to, perhaps through other links, if it is there. The
/// last of those links, which is the log's own, may be gone.
fn linked(link: &Path) -> Option<PathBuf> {
    let mut link = link.to_path_buf();
    for _ in 0..LINKS_MAX {
        let target = directory_of(&link).join(fs::read_link(&link).ok()?);
        let directory = directory_of(&target);
        if target.file_name()? == CURRENT_NAME && holds_log(directory) {
            return Some(directory.to_path_buf());
        }
        if fs::symlink_metadata(&target).is_err() {
            return target_of_link(&target).filter(|directory| holds_log(directory));
        }
        link = target;
    }
    None
}

/// Whether a log is there, or was begun.
pub fn holds_log(directory: &Path) -> bool {
    let parts = [CONTROL_NAME, GEOMETRY_NAME];
    parts.iter().any(|name| fs::symlink_metadata(directory.join(name)).is_ok())
}
