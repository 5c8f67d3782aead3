//! Finding the file, and deciding whether its writer has a say.

use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{self, FileType, OFlags, Stat};
use rustix::io::Errno;

use vellum::internal::OsResult;
use vellum::{Error, ErrorKind, Result};

use crate::{Advice, FILE_NAME, text};

/// No such file is longer; one that is was not made by us.
const LEN_MAX: u64 = 64 << 10;

/// Reads the file in `dir`, if there is one of a user that has a say.
pub(super) fn read(dir: &Path) -> Result<Option<Advice>> {
    let path = dir.join(FILE_NAME);
    let found = match fs::lstat(&path) {
        Ok(found) => found,
        // A directory that cannot be read has no file for this process.
        Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS | Errno::NAMETOOLONG) => return Ok(None),
        Err(errno) => return Err(Error::os(errno, "look for", &path)),
    };
    let Ok(dir) = fs::stat(dir) else { return Ok(None) };
    if !has_a_say(&found, &dir) {
        return Ok(None);
    }
    check(&found, &path)?;
    // A user may have put another in its place; a pipe would block this process.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let fd = vellum_sys::file::open(&path, flags, 0).or_os("read the advice in", &path)?;
    let opened = fs::fstat(&fd).or_os("look at", &path)?;
    if !has_a_say(&opened, &dir) {
        return Ok(None);
    }
    check(&opened, &path)?;
    let mut bytes = Vec::new();
    let read = std::fs::File::from(fd).take(LEN_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
        .or_os("read the advice in", &path)?;
    if bytes.len() as u64 > LEN_MAX {
        return Err(invalid(too_long(), &path));
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| invalid("the file is not text in UTF-8".into(), &path))?;
    text::parse(&text).map(Some).map_err(|fault| invalid(fault, &path))
}

/// Finds the nearest file for logs and files that are created in `dir`.
pub(super) fn find(dir: &Path) -> Result<Option<(PathBuf, Advice)>> {
    // A path that is too long to be told is no reason not to create a log.
    let Ok(dir) = std::fs::canonicalize(dir) else { return Ok(None) };
    let here = device(&dir);
    for ancestor in dir.ancestors() {
        if device(ancestor) != here {
            break;
        }
        if let Some(advice) = read(ancestor)? {
            return Ok(Some((ancestor.join(FILE_NAME), advice)));
        }
    }
    Ok(None)
}

/// Finds the nearest file for a log in `log`: the search begins above it, and on its filesystem.
pub(super) fn nearest(log: &Path) -> Result<Option<(PathBuf, Advice)>> {
    if std::fs::symlink_metadata(log).is_err() {
        let parent = log.parent().filter(|parent| *parent != Path::new(""));
        return find(parent.unwrap_or(Path::new(".")));
    }
    let Ok(log) = std::fs::canonicalize(log) else { return Ok(None) };
    match log.parent() {
        Some(parent) if device(parent) == device(&log) => find(parent),
        _ => Ok(None),
    }
}

fn device(dir: &Path) -> Option<u64> {
    std::fs::metadata(dir).map(|metadata| metadata.dev()).ok()
}

/// Whether a file is of a user that has a say in a directory: root, the user of this process, or
/// the owner of the directory. And whether no other user can have put it there.
fn has_a_say(file: &Stat, dir: &Stat) -> bool {
    let is_known = |uid: u32| uid == 0 || uid == rustix::process::geteuid().as_raw();
    let is_of_owner = file.st_uid == dir.st_uid;
    (is_of_owner || is_known(file.st_uid) && is_known(dir.st_uid)) && !others_may_write(dir)
}

/// Whether others than its owner may write to a file or into a directory. A sticky directory is
/// none the better: any user can move a file of another into it that is not there yet.
fn others_may_write(it: &Stat) -> bool {
    // Where each user has a group of his own, it has his number, and files are made for it.
    let is_own_group = it.st_gid == it.st_uid;
    it.st_mode & 0o002 != 0 || it.st_mode & 0o020 != 0 && !is_own_group
}

/// Refuses a directory into which others may write: a file in it would not be followed.
pub(super) fn check_directory(dir: &Path) -> Result<()> {
    if !others_may_write(&fs::stat(dir).or_os("look at", dir)?) {
        return Ok(());
    }
    let message = format!(
        "others may write into this directory, so no {FILE_NAME} in it is followed; put it into a \
         directory further up, or run `chmod go-w` on this one"
    );
    Err(invalid(message, dir))
}

fn check(file: &Stat, path: &Path) -> Result<()> {
    if FileType::from_raw_mode(file.st_mode) != FileType::RegularFile {
        let message = "advice is read from a regular file only; put the file itself here, or \
                       turn advice off";
        return Err(invalid(message.into(), path));
    }
    if others_may_write(file) {
        let message = "others than its owner may write to this file, so it cannot be followed; run \
                       `chmod go-w` on it";
        return Err(invalid(message.into(), path));
    }
    if file.st_size as u64 > LEN_MAX {
        return Err(invalid(too_long(), path));
    }
    Ok(())
}

fn too_long() -> String {
    format!("the file is longer than {LEN_MAX} bytes, so it is not advice")
}

fn invalid(message: String, path: &Path) -> Error {
    Error::new(ErrorKind::InvalidOption, message).at_path(path)
}
