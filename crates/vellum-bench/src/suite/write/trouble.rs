//! What went wrong in a case, with the system's own answer, which tells what can't be done here
//! from what has failed.

use std::fmt;
use std::io;

use rustix::io::Errno;

use crate::error::{Error, ErrorKind};

/// A call that failed.
#[derive(Debug)]
pub(super) struct Trouble {
    /// What was tried.
    pub(super) what: String,
    pub(super) error: io::Error,
}

/// The result of what a case does.
pub(super) type Tried<T> = Result<T, Trouble>;

impl Trouble {
    /// What another module says of the call `what`.
    pub(super) fn of(what: &str, error: Error) -> Trouble {
        let kind = match error.kind() {
            ErrorKind::Unsupported => io::ErrorKind::Unsupported,
            _ => io::ErrorKind::Other,
        };
        Trouble { what: what.into(), error: io::Error::new(kind, error) }
    }

    /// Is this a call that the filesystem or the kernel does not have, rather than one that failed?
    pub(super) fn is_unsupported(&self) -> bool {
        let errno = self.error.raw_os_error().map(Errno::from_raw_os_error);
        let kind = self.error.kind();
        kind == io::ErrorKind::Unsupported
            || matches!(errno, Some(Errno::OPNOTSUPP | Errno::INVAL | Errno::NOSYS | Errno::NODEV))
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.error)
    }
}

/// Says what was tried when a call failed.
pub(super) trait Trying<T> {
    /// `what` names the call.
    fn trying(self, what: &str) -> Tried<T>;
}

impl<T, E: Into<io::Error>> Trying<T> for Result<T, E> {
    fn trying(self, what: &str) -> Tried<T> {
        self.map_err(|error| Trouble { what: what.into(), error: error.into() })
    }
}
