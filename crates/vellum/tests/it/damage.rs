//! Bad input: one clear error each, and nothing lost.

mod bytes;
mod closed;
mod crowds;
mod directory;
mod giants;
mod moved;
mod owners;
mod rebuilding;
mod refusals;
mod rights;
mod scribbles;
mod unreadable;

use crate::support::child::Role;

pub(crate) const ROLES: &[Role] = &[
    ("scribble", scribbles::scribble),
    ("try as nobody", rights::try_as_nobody),
    ("lock everything as nobody", rights::lock_everything_as_nobody),
    ("crowd", crowds::crowd),
    ("busy crowd", crowds::busy_crowd),
    ("act as user", owners::act_as_user),
    ("append without rights", owners::append_without_rights),
    ("close descriptors", closed::close_descriptors),
    ("read with closed descriptors", closed::read_with_closed_descriptors),
    ("become a daemon", directory::become_a_daemon),
    ("go elsewhere", directory::go_elsewhere),
    ("commit below 0711", directory::commit_below_0711),
];
