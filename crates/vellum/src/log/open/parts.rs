//! What opening for writing and opening for reading have in common.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::AtomicU64;

use rustix::fs::{self, FileType};
use rustix::io::Errno;

use crate::format::control::Geometry;
use crate::format::frame::Codec;
use crate::log::commit::commit_path;
use crate::log::commit::trigger::Trigger;
use crate::log::state::control::stored_geometry;
use crate::log::state::core::Core;
use crate::log::state::watch::Watch;
use crate::log::state::writer::Writer;
use crate::options::limits::{
    MAPPED_BYTES_MAX_DEFAULT, PREFAULT_BYTES_DEFAULT, STAGED_SEGMENTS_MAX_DEFAULT,
};
use crate::segment::listing::LastListing;
use crate::segment::pace::Pace;
use crate::segment::pieces::Pieces;
use crate::segment::rights::Rights;
use crate::segment::stage::Stage;
use crate::shared::region::Region;
use crate::sys::Dir;
use crate::sys::filesystem::Filesystem;
use crate::{Error, ErrorKind, Fill, Options, Result, knowledge};

/// A log of these parts, without a writer.
pub(crate) fn core(
    dir: &Dir,
    options: &Options,
    geometry: Geometry,
    filesystem: Filesystem,
    rights: Rights,
    region: Region,
) -> Core {
    let is_staged = geometry.fill == Fill::Staged;
    let commit_path = match is_staged {
        true => commit_path::choose(dir, filesystem, options),
        false => knowledge::commit_path(1),
    };
    Core {
        dir: dir.clone(),
        codec: Codec::new(geometry.secret),
        filesystem,
        rights,
        pieces: Pieces::default(),
        pace: Pace::default(),
        prefault_bytes: options
            .prefault_bytes
            .unwrap_or(PREFAULT_BYTES_DEFAULT)
            .min(geometry.segment_capacity),
        mapped_bytes_max: options.mapped_bytes_max.unwrap_or(MAPPED_BYTES_MAX_DEFAULT),
        timeout: options.timeout,
        on_full: options.on_full,
        staged_segments_max: options.staged_segments_max.unwrap_or(STAGED_SEGMENTS_MAX_DEFAULT),
        on_stage_full: options.on_stage_full,
        trigger: Trigger::new(options.checkpoint_after_bytes),
        stage: is_staged.then(|| Stage::of(dir, filesystem)),
        block: if is_staged { commit_path.block_bytes } else { 1 },
        commit_path,
        recovery: None,
        identity: None,
        epoch: AtomicU64::new(0),
        advice: None,
        geometry,
        options: Box::new(options.clone()),
        watch: Watch::default(),
        last_listing: LastListing::default(),
        writer: None,
        leave: |core, attachment| Writer { core, attachment }.detach(),
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
