//! A commit: groups, their way to the device, and waiting for them.

pub(crate) mod checkpoint;
pub(crate) mod commit_path;
pub(crate) mod committer;
pub(crate) mod device;
pub(crate) mod durable;
pub(crate) mod group;
pub(crate) mod poison;
pub(crate) mod trigger;

use crate::log::state::core::Core;

/// A commit, before this process has looked whether it leads a group.
#[derive(Clone, Copy)]
pub(crate) struct Commit<'a> {
    pub(crate) core: &'a Core,
}

impl<'a> Commit<'a> {
    #[inline]
    pub(crate) fn of(core: &'a Core) -> Commit<'a> {
        Commit { core }
    }
}
