//! Sending the records of a log to a topic of Kafka, each once.
//!
//! Kafka itself has the position: it is committed in the transaction of the records before it. So
//! no death leaves one without the other. Nothing that is stored here decides where to continue;
//! the named cursor only keeps records that are not sent yet.

mod config;
mod connection;
mod error;
mod lines;
mod mark;
mod send;
mod session;
mod start;
mod target;

pub use config::Config;
pub use error::SendError;
pub use send::{Event, SendOptions, send};
pub use target::Target;
