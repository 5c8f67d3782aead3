//! The interface for the process that ships the log to another machine, and for its waiters. The
//! log itself sends nothing.

pub(crate) mod decode;
mod election;
pub(crate) mod hold;
mod note;
pub(crate) mod raw;
pub(crate) mod restore;
pub(crate) mod restored;
mod room;
mod saved;
pub(crate) mod shape;
pub(crate) mod shipper;
pub(crate) mod state;
pub(crate) mod wait;
