//! A commit: groups, their way to the device, and waiting for them.

pub(crate) mod checkpoint;
pub(crate) mod commit_path;
pub(crate) mod committer;
pub(crate) mod device;
pub(crate) mod durable;
pub(crate) mod group;
pub(crate) mod help;
pub(crate) mod record;
pub(crate) mod stored_path;
pub(crate) mod trigger;
pub(crate) mod waiting;

use crate::log::state::core::Core;
use crate::log::state::writer::Writer;

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

/// A participant that leads a commit group, or waits for one.
#[derive(Clone, Copy)]
pub(crate) struct Leader<'a> {
    pub(crate) writer: Writer<'a>,
}

impl<'a> Leader<'a> {
    #[inline]
    pub(crate) fn of(writer: Writer<'a>) -> Leader<'a> {
        Leader { writer }
    }
}
