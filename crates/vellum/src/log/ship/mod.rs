//! The interface for the process that ships the log to another machine, and for its waiters. The
//! log itself sends nothing.

mod election;
pub(crate) mod hold;
pub(crate) mod raw;
pub(crate) mod saved;
pub(crate) mod shape;
pub(crate) mod shipper;
pub(crate) mod state;
pub(crate) mod wait;
