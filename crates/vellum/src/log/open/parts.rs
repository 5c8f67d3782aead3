//! The common parts of opening for writing and opening for reading.

use std::os::fd::OwnedFd;

use rustix::fs;

use crate::Options;
use crate::files::Files;
use crate::log::commit::commit_path;
use crate::log::state::core::Core;
use crate::log::state::parts::{Choices, Commits, Ready};
use crate::segment::rights::Rights;
use crate::segment::stage::Stage;
use crate::sys::Dir;
use crate::sys::filesystem::Filesystem;

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
