//! Why a shipped log could not be read.

use crate::decide::Trouble;
use crate::object::BadObject;
use crate::store::StoreError;

/// Anything that keeps a log from being read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// A request failed, and did so again.
    #[error("{key}{error}")]
    Store {
        /// The object, or the prefix that was listed, and a colon; nothing where it is of all.
        key: String,
        /// The error of the store.
        error: StoreError,
    },
    /// An object that is damaged or misplaced.
    #[error("the object {key} is damaged: {fault}")]
    Object {
        /// Its key.
        key: String,
        /// Its fault.
        fault: BadObject,
    },
    /// The objects do not make a log.
    #[error(transparent)]
    Trouble(#[from] Trouble),
    /// There is no object `log`.
    #[error("no log is at this URL: the object `log` is missing")]
    NoLog,
    /// An object is there no more each time it is fetched.
    #[error("objects were deleted again and again while they were read; stop the retention")]
    Unstable,
    /// A position or a time at which nothing is.
    #[error("{0}")]
    Position(String),
    /// The log that is written here.
    #[error(transparent)]
    Local(#[from] vellum::Error),
}

impl ReadError {
    /// Whether what is stored is damaged, and not the way to it.
    pub fn is_damage(&self) -> bool {
        match self {
            ReadError::Object { .. } | ReadError::Trouble(Trouble::Damaged(_)) => true,
            ReadError::Local(error) => error.kind() == vellum::ErrorKind::Corrupt,
            _ => false,
        }
    }
}
