//! The common parts of opening for writing and opening for reading.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{self, FileType};
use rustix::io::Errno;

use crate::files::Files;
use crate::log::commit::commit_path;
use crate::log::state::core::Core;
use crate::log::state::parts::{Choices, Commits, Ready};
use crate::segment::rights::Rights;
use crate::segment::stage::Stage;
use crate::sys::Dir;
use crate::sys::filesystem::Filesystem;
use crate::{Error, ErrorKind, Options, Result};

/// The log `core`, which was good for reading files, with the choices for it.
pub(crate) fn chosen(
    mut core: Core,
    options: &Options,
    filesystem: Filesystem,
    rights: Rights,
) -> Core {
    core.files.rights = rights;
    let Files { dir, geometry, .. } = &core.files;
    let stage = geometry.is_staged().then(|| Stage::of(dir, filesystem));
    core.ready = Ready::new(filesystem, options, geometry);
    core.commits = Commits::new(stage, || commit_path::choose(dir, filesystem, options), options);
    core.choices = Choices::new(options);
    core
}

pub(crate) fn rights_like(control: &OwnedFd, dir: &Dir) -> rustix::io::Result<Rights> {
    Rights::like(&fs::fstat(control)?, dir)
}

pub(crate) fn open_directory(path: &Path) -> Result<Dir> {
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
