//! Why shipping ends.

use crate::decide::{Stop, Trouble};
use crate::object::BadObject;
use crate::read::ReadError;
use crate::store::StoreError;

/// Why shipping ends.
#[derive(Debug, thiserror::Error)]
pub enum ShipError {
    /// Another one has the log, or the store has another history.
    #[error("{0}; see docs/shipping.md before you use --take-over")]
    Stopped(Stop),
    /// The store has this log, and this directory has never shipped to it.
    #[error(
        "the store has this log already, and this copy of it does not own it: stop the other \
         shipper and use --take-over, or choose another URL"
    )]
    NotOwner,
    /// The store has another log.
    #[error("the store has the log {0}, which is another one: choose another URL")]
    AnotherLog(String),
    /// The log ships somewhere else.
    #[error(
        "this log ships to {0}: use that URL, or end that with `vellum ship --detach LOG`, or have \
         this one take its place with --take-over"
    )]
    AnotherUrl(String),
    /// The object that says which log it is has gone.
    #[error("the store does not have the object `log` any more: its content was deleted")]
    Gone,
    /// The objects in the store do not lead to its newest generation.
    #[error("the store has generations that its older objects do not lead to: nothing is deleted")]
    Unclear,
    /// Another claimant was faster.
    #[error("another shipper has taken the log over")]
    Lost,
    /// The local state cannot be used: its fault.
    #[error(
        "the file `ship` of the log is not what a shipper has stored ({0}): restore it, or remove \
         it and use --take-over"
    )]
    State(String),
    /// The objects in the store contradict each other.
    #[error(transparent)]
    Trouble(#[from] Trouble),
    /// An object is damaged.
    #[error("the object {key}: {fault}")]
    Object {
        /// Its name.
        key: String,
        /// Its fault.
        fault: BadObject,
    },
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Reading the store failed.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The log cannot be used.
    #[error(transparent)]
    Log(#[from] vellum::Error),
    /// A file could not be written or read.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}
