//! Ships a Vellum log to object storage, restores it, and reads it from afar.
//!
//! `decide` chooses the next step and carries none out: state and event go in, actions come out.
//! The model in `decide/model/` drives that code through every order of events that it can reach.

pub mod decide;
pub mod driver;
#[cfg(feature = "kafka")]
pub mod kafka;
pub mod object;
pub mod pool;
pub mod read;
pub mod store;
