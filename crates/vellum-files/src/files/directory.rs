//! The directory of a log: making it, opening it.

use std::path::{Path, PathBuf};

use rustix::fs::{self, FileType, Mode};
use rustix::io::Errno;

use crate::sys::{self, Dir};
use crate::{Error, ErrorKind, Result};

/// Makes the directory of a log, where a link leads to if that is nothing; says which it made.
pub fn make_directory(dir: &Path, mode: u32) -> Result<Option<PathBuf>> {
    // A user that may read or write files may also search the directory.
    let search = (mode & 0o444) >> 2 | (mode & 0o222) >> 1;
    match fs::mkdir(dir, Mode::from_raw_mode(mode | search)) {
        Ok(()) => Ok(Some(dir.to_path_buf())),
        Err(Errno::EXIST) => match dangling(dir) {
            Some(target) => make_directory(&target, mode),
            None => Ok(None),
        },
        Err(errno) => Err(Error::os(errno, "create the log's directory", dir)),
    }
}

/// Where a link leads, one step of the way, if there is nothing at the end of it.
fn dangling(link: &Path) -> Option<PathBuf> {
    if fs::stat(link).err() != Some(Errno::NOENT) {
        return None;
    }
    let target = std::fs::read_link(link).ok()?;
    Some(sys::file::directory_of(link).join(target))
}

/// Opens the directory of a log.
pub fn open_directory(path: &Path) -> Result<Dir> {
    Dir::open(path).map_err(|errno| match errno {
        Errno::NOTDIR => {
            let what = fs::stat(path).map_or("not one", |found| kind_of(&found));
            let message = format!("not a log: a log is a directory of files, and this is {what}");
            Error::new(ErrorKind::Incompatible, message).at_path(path)
        }
        Errno::NOENT => Error::new(ErrorKind::NotFound, "there is no log").at_path(path),
        errno => Error::os(errno, "open the log's directory", path),
    })
}

fn kind_of(found: &fs::Stat) -> &'static str {
    match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => "a file",
        FileType::Fifo => "a pipe",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        _ => "not one",
    }
}
