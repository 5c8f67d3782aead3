//! A commit: groups, their way to the device, and waiting for them.

pub(crate) mod checkpoint;
pub(crate) mod commit_path;
pub(crate) mod committer;
pub(crate) mod device;
pub(crate) mod durable;
pub(crate) mod group;
pub(crate) mod trigger;
