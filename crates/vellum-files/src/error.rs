//! The one error type: the kind of failure, the file, the position, and the remedy.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, io};

use rustix::io::Errno;

use crate::Lsn;
use crate::escape::escaped;
use crate::sys::dir::{NOT_REGULAR, NOT_SHARED, TOO_LONG};
use crate::sys::memory::lock_limit;

/// The remedy where files cannot be mapped, or not synced.
const USE_THE_PAGE_CACHE: &str = "mount it with a page cache (mergerfs: `cache.files=auto-full`, \
                                  rclone: `--vfs-cache-mode writes`), or use another one";

/// The mark before and behind the name of an option in a message, so that each program can spell it
/// as its users write it.
const MARK: char = '\0';

/// A specialised `Result` for this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of a failure; match on this, never on the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u32)]
pub enum ErrorKind {
    /// The operating system refused an operation for a reason that has no kind of its own.
    Io = 1,
    /// The disk, the quota or the file-size limit is exhausted. Nothing was reserved.
    NoSpace = 2,
    /// There is no log at this path.
    NotFound = 3,
    /// There is already a log or file at this path, and a new one was asked for.
    AlreadyExists = 4,
    /// The permissions of the log do not allow this.
    PermissionDenied = 5,
    /// The log was opened for reading only.
    ReadOnly = 6,
    /// The filesystem or the kernel cannot do what a log needs.
    Unsupported = 7,
    /// An option is out of range, or the log has another kind of records.
    InvalidOption = 8,
    /// The record or batch is longer than 4 GiB − 1.
    RecordTooLarge = 9,
    /// As many processes as the control file has room for are attached.
    TooManyParticipants = 10,
    /// The position has been trimmed away.
    Trimmed = 11,
    /// The position is beyond the end, or is not the start of a record.
    OutOfRange = 12,
    /// The log holds bytes that no crash explains.
    Corrupt = 13,
    /// Not a log, or a log of another format version.
    Incompatible = 14,
    /// The address space of the log (16 PiB) is used up.
    Exhausted = 15,
    /// A reservation was left incomplete and has been abandoned.
    Abandoned = 16,
    /// The log is in use in a way that excludes this operation.
    Busy = 17,
    /// A write or sync of the log failed before: nothing more can be made durable until every
    /// process has closed the log and one has opened it again.
    Poisoned = 18,
    /// Another process held what the call needs for longer than the call was to wait. The text
    /// names the process, its hold and its state. An append or a commit has changed nothing.
    TimedOut = 19,
    /// The log's directory was removed or moved while the log was open, or its files were. The
    /// earlier records are where the directory went.
    /// [`Log::reopen`](../vellum/struct.Log.html#method.reopen) continues in a new log at the same
    /// path.
    Removed = 20,
    /// A [`Position`](crate::Position) was taken before a power cut or a truncation took back the
    /// record there. [`Error::lsn`] is where the log may differ from its earlier state; `None`
    /// where that cannot be told, because the log was copied or restored.
    Rewound = 21,
    /// A [`Position`](crate::Position) is of another log.
    OtherLog = 22,
    /// No process ships the log, so nothing can be waited for. Committed records are committed.
    NoShipper = 23,
    /// Another machine, or another copy of the log, has taken over the store that this log is
    /// shipped to. Committed records are committed here, and are not shipped.
    Fenced = 24,
    /// Another process, or another handle of this one, has the log open for writing, and one of the
    /// two wants to be the only one
    /// ([`Options::exclusive`](../vellum/struct.Options.html#method.exclusive)). The text names it.
    /// Nothing was changed.
    InUse = 25,
}

/// No space, which may come: a limit on the size of files (`FBIG`) does not pass.
pub const FULL: [Errno; 2] = [Errno::NOSPC, Errno::DQUOT];

impl ErrorKind {
    /// The kind of an error number of the operating system.
    fn of(errno: Errno) -> ErrorKind {
        match errno {
            Errno::NOSPC | Errno::DQUOT | Errno::FBIG => ErrorKind::NoSpace,
            Errno::NOENT => ErrorKind::NotFound,
            Errno::EXIST => ErrorKind::AlreadyExists,
            Errno::ACCESS | Errno::PERM | Errno::ROFS | NOT_SHARED => ErrorKind::PermissionDenied,
            NOT_REGULAR => ErrorKind::Incompatible,
            TOO_LONG => ErrorKind::Corrupt,
            Errno::OPNOTSUPP | Errno::NOSYS | Errno::NODEV => ErrorKind::Unsupported,
            _ => ErrorKind::Io,
        }
    }
}

/// An error of a log operation.
///
/// Its text is one complete sentence that names the operation, the file, the value and, where the
/// caller can do something about it, the remedy. [`Error::kind`] is what programs match. The
/// [source](std::error::Error::source) is the [`io::Error`] of a system call that failed, where one
/// did; the text has its words too.
#[derive(Clone, Debug)]
pub struct Error(Box<Detail>);

#[derive(Clone, Debug)]
struct Detail {
    kind: ErrorKind,
    /// Each name of an option is between two [`MARK`]s.
    message: String,
    path: Option<PathBuf>,
    lsn: Option<Lsn>,
    cause: Option<Arc<io::Error>>,
    /// Whether it was a sync that failed: see [`OsResult::or_unsynced`].
    is_of_sync: bool,
}

impl Error {
    /// An error that Vellum itself found.
    #[doc(hidden)]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        let message = message.into();
        let (path, lsn, cause, is_of_sync) = (None, None, None, false);
        Error(Box::new(Detail { kind, message, path, lsn, cause, is_of_sync }))
    }

    /// An error that the operating system answered while Vellum tried to `operation` on `path`.
    #[doc(hidden)]
    pub fn os(errno: Errno, operation: &str, path: &(impl AsRef<Path> + ?Sized)) -> Error {
        let kind = ErrorKind::of(errno);
        let error = match own_reason(errno) {
            // Which number that is says nothing.
            Some(reason) => Error::new(kind, format!("cannot {operation}: {reason}")),
            None => Error::new(kind, format!("cannot {operation}")).caused_by(errno),
        };
        error.at_path(path)
    }

    /// The error of a mapping that the operating system refused: it names the limit, or the fault
    /// of the filesystem.
    fn unmapped(errno: Errno, operation: &str, path: &(impl AsRef<Path> + ?Sized)) -> Error {
        let mut error = Error::os(errno, operation, path);
        match (errno, lock_limit()) {
            (Errno::AGAIN, Some(limit)) => error.add(&format!(
                ": this process locks all its memory (mlockall), and may lock {limit} bytes; raise \
                 that limit (`ulimit -l`, `LimitMEMLOCK=`), or do not lock what is mapped later"
            )),
            (Errno::NODEV, _) => error.add(&format!(
                ": files of this filesystem cannot be shared as memory; {USE_THE_PAGE_CACHE}"
            )),
            _ => {}
        }
        error
    }

    fn caused_by(mut self, errno: Errno) -> Error {
        self.0.cause = Some(Arc::new(errno.into()));
        self
    }

    fn errno(&self) -> Option<Errno> {
        self.0.cause.as_ref().and_then(|cause| Errno::from_io_error(cause))
    }

    fn add(&mut self, text: &str) {
        self.0.message.push_str(text);
    }

    /// The same error of making a log on FUSE, with the possible fault of the server.
    #[doc(hidden)]
    pub fn on_fuse(mut self) -> Error {
        if self.errno().is_some_and(|errno| errno != Errno::NODEV) {
            self.add(&format!(" on a FUSE filesystem; {USE_THE_PAGE_CACHE}"));
        }
        self
    }

    /// The error after a failed write or sync, which no later call takes back.
    #[doc(hidden)]
    pub fn poisoned(errno: Errno, operation: &str, path: &Path) -> Error {
        let message = format!(
            "could not {operation} the log, so nothing more can be made durable until every \
             process has closed it and one has opened it again"
        );
        Error::new(ErrorKind::Poisoned, message).caused_by(errno).at_path(path)
    }

    /// The same error, saying which file it is about.
    #[doc(hidden)]
    pub fn at_path(mut self, path: &(impl AsRef<Path> + ?Sized)) -> Error {
        self.0.path = Some(path.as_ref().to_path_buf());
        self
    }

    /// The same error, saying which position it is about.
    #[doc(hidden)]
    pub fn at_lsn(mut self, lsn: Lsn) -> Error {
        self.0.lsn = Some(lsn);
        self
    }

    /// The kind of the failure.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The option that it is about, by the name of its method in
    /// [`Options`](../vellum/struct.Options.html), where there is one.
    pub fn option(&self) -> Option<&str> {
        self.0.message.split(MARK).nth(1)
    }

    /// The whole text, with each option in it as `spell` writes it: for programs whose users know
    /// an option by another name.
    ///
    /// ```
    /// # let refused = "\0prefault_bytes\0 100 is not a positive multiple of the page size";
    /// # let error = vellum_files::Error::new(vellum_files::ErrorKind::InvalidOption, refused);
    /// // The error of opening with `Tuning::new().prefault_bytes(100)`.
    /// assert_eq!(error.option(), Some("prefault_bytes"));
    /// let text = error.text_with(|option| format!("--{}", option.replace('_', "-")));
    /// assert!(text.starts_with("--prefault-bytes 100 is not"));
    /// ```
    pub fn text_with(&self, spell: impl Fn(&str) -> String) -> String {
        let mut text = String::new();
        for (number, piece) in self.0.message.split(MARK).enumerate() {
            let is_option = number % 2 == 1;
            text += &if is_option { spell(piece) } else { escaped(piece).to_string() };
        }
        if let Some(path) = &self.0.path {
            text += &format!(" ({})", escaped(path.display()));
        }
        if let Some(cause) = &self.0.cause {
            text += &format!(": {cause}");
        }
        text
    }

    /// The file or directory it is about, where there is one.
    pub fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }

    /// The position it is about, where there is one.
    pub fn lsn(&self) -> Option<Lsn> {
        self.0.lsn
    }

    /// The error number of a sync that the device has failed, as opposed to one for which there
    /// was no space, or which a filter of calls does not know.
    #[doc(hidden)]
    pub fn failed_sync(&self) -> Option<Errno> {
        let is_failed = self.0.is_of_sync && self.0.kind != ErrorKind::NoSpace;
        self.errno().filter(|errno| is_failed && *errno != Errno::NOSYS)
    }

    /// The operating system's error number, where it was the operating system that refused.
    pub fn raw_os_error(&self) -> Option<i32> {
        self.0.cause.as_ref().and_then(|cause| cause.raw_os_error())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text_with(str::to_string))
    }
}

/// The meaning of the numbers that Vellum itself gives to faults.
fn own_reason(errno: Errno) -> Option<&'static str> {
    match errno {
        NOT_REGULAR => Some("this is no regular file but a link, a pipe or a directory; remove it"),
        NOT_SHARED => Some(
            "some users may write to the log and not to this file, so it may be a private file \
             that was moved here; move it away, or give it the owner, the group and the mode of \
             `control`",
        ),
        TOO_LONG => Some("the file is longer than any that Vellum makes; restore it"),
        _ => None,
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.cause.as_deref().map(|cause| cause as _)
    }
}

/// Gives an answer of the operating system the operation and the file it was about.
pub trait OsResult<T> {
    /// The answer, or an error that says that Vellum could not `operation` on `path`.
    ///
    /// # Errors
    ///
    /// The one of the operating system.
    fn or_os(self, operation: &str, path: &(impl AsRef<Path> + ?Sized)) -> Result<T>;

    /// The same for the answer of a sync.
    ///
    /// # Errors
    ///
    /// The one of the operating system.
    fn or_unsynced(self, operation: &str, path: &(impl AsRef<Path> + ?Sized)) -> Result<T>;

    /// The same for a mapping.
    ///
    /// # Errors
    ///
    /// The one of the operating system.
    fn or_unmapped(self, operation: &str, path: &(impl AsRef<Path> + ?Sized)) -> Result<T>;
}

impl<T> OsResult<T> for rustix::io::Result<T> {
    fn or_os(self, operation: &str, path: &(impl AsRef<Path> + ?Sized)) -> Result<T> {
        self.map_err(|errno| Error::os(errno, operation, path))
    }

    fn or_unsynced(self, operation: &str, path: &(impl AsRef<Path> + ?Sized)) -> Result<T> {
        self.or_os(operation, path).map_err(|mut error| {
            error.0.is_of_sync = true;
            error
        })
    }

    fn or_unmapped(self, operation: &str, path: &(impl AsRef<Path> + ?Sized)) -> Result<T> {
        self.map_err(|errno| Error::unmapped(errno, operation, path))
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> io::Error {
        use io::ErrorKind as Std;
        let kind = match error.kind() {
            ErrorKind::NoSpace => Std::StorageFull,
            ErrorKind::NotFound => Std::NotFound,
            ErrorKind::AlreadyExists => Std::AlreadyExists,
            ErrorKind::PermissionDenied | ErrorKind::ReadOnly => Std::PermissionDenied,
            ErrorKind::Unsupported => Std::Unsupported,
            ErrorKind::InvalidOption | ErrorKind::RecordTooLarge => Std::InvalidInput,
            ErrorKind::Corrupt | ErrorKind::Incompatible => Std::InvalidData,
            ErrorKind::Busy | ErrorKind::InUse => Std::ResourceBusy,
            ErrorKind::TimedOut => Std::TimedOut,
            _ => Std::Other,
        };
        io::Error::new(kind, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_obeys_nothing_in_an_error() {
        let error = Error::new(ErrorKind::Corrupt, "what\u{1b}[2J").at_path("/x/\nvellum: good");
        assert_eq!(error.to_string(), "what\\u{1b}[2J (/x/\\nvellum: good)");
    }

    #[test]
    fn each_option_is_spelled_where_it_is_named() {
        let message = "leave out \0a_b\0 and \0c\0, or go";
        let error = Error::new(ErrorKind::InvalidOption, message);
        assert_eq!(error.option(), Some("a_b"));
        assert_eq!(error.to_string(), "leave out a_b and c, or go");
        let spell = |name: &str| format!("--{}", name.replace('_', "-"));
        assert_eq!(error.text_with(spell), "leave out --a-b and --c, or go");
        assert_eq!(Error::new(ErrorKind::Io, "no option").option(), None);
    }

    #[test]
    fn an_error_names_the_operation_the_file_and_the_cause() {
        let error = Error::os(Errno::NOSPC, "allocate the next segment", Path::new("/x/1.seg"));
        assert_eq!(error.kind(), ErrorKind::NoSpace);
        let text = error.to_string();
        assert!(text.starts_with("cannot allocate the next segment (/x/1.seg): "), "{text}");
    }

    #[test]
    fn behind_an_error_is_that_of_the_system_call() {
        use std::error::Error as _;
        let error = Error::os(Errno::NOSPC, "allocate", Path::new("/x")).clone();
        let source = error.source().and_then(|source| source.downcast_ref::<io::Error>());
        assert_eq!(source.and_then(io::Error::raw_os_error), Some(libc::ENOSPC));
        assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
        // No system call said that.
        assert!(Error::os(NOT_REGULAR, "open", Path::new("/x")).source().is_none());
        assert!(Error::new(ErrorKind::Corrupt, "torn").source().is_none());
    }
}
