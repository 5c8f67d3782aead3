//! The base of all parts of an open log: its files, its words, its locks, and their checks.

pub(crate) mod attachment;
pub(crate) mod busy;
pub(crate) mod byte_lock;
pub(crate) mod control;
pub(crate) mod core;
pub(crate) mod extent;
pub(crate) mod gate;
pub(crate) mod helpers;
pub(crate) mod holds;
pub(crate) mod identity;
pub(crate) mod newest;
pub(crate) mod parts;
pub(crate) mod place;
pub(crate) mod poison;
pub(crate) mod reserved;
pub(crate) mod returning;
pub(crate) mod segments;
pub(crate) mod skipped;
pub(crate) mod view;
pub(crate) mod wait;
pub(crate) mod wakeup;
pub(crate) mod watch;
pub(crate) mod writer;
