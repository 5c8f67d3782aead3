//! The restore of a log, and the names of its files.

use crate::Lsn;

/// How a log is restored.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RestoreOptions {
    /// Permission bits of the files, less the umask. Default: 0666.
    pub mode: Option<u32>,
    /// Whether the log continues to remove old files by its rules. Default: no, because that would
    /// remove files that were just restored. Rules of rotation are kept.
    pub keeps_retention: bool,
    /// Whether a text log is at the path of a file
    /// ([`Options::file_link`](../../vellum/struct.Options.html#method.file_link)). Default: no.
    pub file_link: bool,
    /// Whether files may be in the directory that are of no log.
    pub(crate) may_have_others: bool,
}

impl RestoreOptions {
    /// The defaults.
    pub fn new() -> RestoreOptions {
        RestoreOptions::default()
    }

    /// The defaults, for a directory that may have files of no log in it.
    #[doc(hidden)]
    pub fn beside_others() -> RestoreOptions {
        RestoreOptions { may_have_others: true, ..RestoreOptions::new() }
    }
}

/// The file of a text log that the next bytes belong to
/// ([`Restorer::file`](crate::restore::restorer::Restorer::file)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileName {
    /// First position of its segment.
    pub start: Lsn,
    /// The time in its name, in seconds since 1970; `None` for a file of an earlier version.
    pub time: Option<u64>,
    /// Whether it continues the file before.
    pub is_continuation: bool,
}

impl FileName {
    /// The file of the segment at `start`.
    pub fn new(start: Lsn, time: Option<u64>, is_continuation: bool) -> FileName {
        FileName { start, time, is_continuation }
    }
}
