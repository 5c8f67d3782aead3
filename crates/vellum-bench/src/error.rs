//! The one error of this crate: a sentence with the attempt and its outcome.

use std::fmt;
use std::io;

use rustix::io::Errno;

/// The result of everything here that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// The kind of a failure; a command line turns this into its exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The caller asked for something that can't be measured; nothing was run.
    InvalidOption,
    /// The disk or the memory would not hold the run; nothing was run.
    NoSpace,
    /// The system or a measured process failed.
    Failed,
    /// The system has no such call here, or not for such files.
    Unsupported,
    /// The run was asked to end before it was over.
    Interrupted,
}

/// Why a measurement could not be made.
///
/// One pointer wide, so that the measured loops do not pay for a fat `Result`.
#[derive(Clone)]
pub struct Error(Box<Repr>);

#[derive(Clone)]
struct Repr {
    kind: ErrorKind,
    text: String,
}

impl Error {
    /// The caller asked for something that can't be measured.
    pub fn invalid(text: impl Into<String>) -> Error {
        Error::new(ErrorKind::InvalidOption, text.into())
    }

    pub(crate) fn no_space(text: impl Into<String>) -> Error {
        Error::new(ErrorKind::NoSpace, text.into())
    }

    pub(crate) fn unsupported(text: impl Into<String>) -> Error {
        Error::new(ErrorKind::Unsupported, text.into())
    }

    pub(crate) fn interrupted() -> Error {
        Error::new(ErrorKind::Interrupted, "interrupted before the first round was over".into())
    }

    /// Something failed that was measured.
    #[cold]
    pub fn failed(text: impl Into<String>) -> Error {
        Error::new(ErrorKind::Failed, text.into())
    }

    /// A call to the system, named by `what`, that ended with `error`.
    #[cold]
    pub(crate) fn os(what: impl fmt::Display, error: impl Into<io::Error>) -> Error {
        Error::failed(format!("{what}: {}", error.into()))
    }

    /// A call to the system that this kernel or this filesystem may not have, by its answer.
    pub(crate) fn os_or_unsupported(what: impl fmt::Display, error: impl Into<io::Error>) -> Error {
        let error = error.into();
        let kind = match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::OPNOTSUPP | Errno::INVAL | Errno::NOSYS | Errno::NOTTY | Errno::NODEV) => {
                ErrorKind::Unsupported
            }
            _ => ErrorKind::Failed,
        };
        Error::new(kind, format!("{what}: {error}"))
    }

    /// The same failure, with its context before it.
    pub(crate) fn within(&self, what: &str) -> Error {
        Error::new(self.kind(), format!("{what}: {self}"))
    }

    fn new(kind: ErrorKind, text: String) -> Error {
        Error(Box::new(Repr { kind, text }))
    }

    /// The kind of the failure.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.0.kind, self.0.text)
    }
}

impl std::error::Error for Error {}

/// Says what was tried when a call to the system failed.
pub(crate) trait Context<T> {
    /// Turns the system's error into ours; `what` is asked for only then.
    fn context<D: fmt::Display>(self, what: impl FnOnce() -> D) -> Result<T>;

    /// The same for a call that this kernel or this filesystem may not have.
    fn trying(self, what: impl fmt::Display) -> Result<T>;
}

impl<T, E: Into<io::Error>> Context<T> for std::result::Result<T, E> {
    fn context<D: fmt::Display>(self, what: impl FnOnce() -> D) -> Result<T> {
        self.map_err(|error| Error::os(what(), error))
    }

    fn trying(self, what: impl fmt::Display) -> Result<T> {
        self.map_err(|error| Error::os_or_unsupported(what, error))
    }
}
