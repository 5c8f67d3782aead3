//! What opening for writing and opening for reading have in common.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{self, FileType};
use rustix::io::Errno;

use crate::format::control::Geometry;
use crate::format::frame::Codec;
use crate::log::commit::commit_path;
use crate::log::state::control::stored_geometry;
use crate::log::state::core::Core;
use crate::log::state::parts::{Choices, Commits, Opened, Ready};
use crate::log::state::watch::Watch;
use crate::segment::rights::Rights;
use crate::segment::stage::Stage;
use crate::shared::region::Region;
use crate::sys::Dir;
use crate::sys::filesystem::Filesystem;
use crate::{Error, ErrorKind, Options, Result};

/// A log of these parts, without a writer.
pub(crate) fn core(
    dir: &Dir,
    options: &Options,
    geometry: Geometry,
    filesystem: Filesystem,
    rights: Rights,
    region: Region,
) -> Core {
    let stage = geometry.is_staged().then(|| Stage::of(dir, filesystem));
    Core {
        dir: dir.clone(),
        geometry,
        codec: Codec::new(geometry.secret),
        ready: Ready::new(filesystem, rights, options, &geometry),
        commits: Commits::new(stage, || commit_path::choose(dir, filesystem, options), options),
        choices: Choices::new(options),
        opened: Opened::default(),
        watch: Watch::default(),
        writer: None,
        region,
    }
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

/// Whether a truncation has begun and not ended.
pub(crate) fn is_being_cut(dir: &Dir) -> bool {
    stored_geometry(dir).is_ok_and(|stored| stored.cut != 0)
}
