//! What the log gives to the process that ships it to another machine, and to those who wait for
//! that. The log itself sends nothing.

mod election;
pub(crate) mod hold;
pub(crate) mod raw;
mod saved;
pub(crate) mod shape;
pub(crate) mod shipper;
pub(crate) mod state;
pub(crate) mod wait;
