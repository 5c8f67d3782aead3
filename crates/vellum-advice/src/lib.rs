#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod advice;
mod follow;
mod known;
mod place;
mod text;

use std::path::{Path, PathBuf};

use vellum::advice::NewLog;
use vellum::{Result, Tuning};

pub use advice::{Advice, FileAdvice, LogAdvice};

/// Name of the file in its directory.
pub const FILE_NAME: &str = "vellum.toml";

/// Finds the tuning for a new log: from the nearest file above it, as [`find`] takes it. A file in
/// the log's own directory does not count.
///
/// For [`Tuning::advice_from`](vellum::Tuning::advice_from). The advice is taken whole: its `wal`
/// for a log that would be staged, its `log` for any other. A value that does not go with the
/// choices of the program is left out, such as recycled files for a text log, and so is
/// [`Fill::Mapped`](vellum::Fill::Mapped) on a filesystem where mapping is not safe.
///
/// # Errors
///
/// As for [`read`], for the nearest file.
///
/// # Cost
///
/// Two system calls for each directory above.
pub fn nearest(log: &NewLog<'_>) -> Result<Option<(PathBuf, Tuning)>> {
    let found = place::nearest(log.dir)?;
    Ok(found.map(|(path, advice)| (path, follow::tuning(&advice, log))))
}

/// Finds the file that holds for logs and files that are created in `dir`: the one in `dir`, or
/// else in the nearest directory above on the same filesystem. It is taken whole, and no other one
/// counts.
///
/// Only a file of root, of the user of this process or of the owner of the directory it is in is
/// taken, and only from a directory into which no other user may write. Any other, say in `/tmp`,
/// is skipped, so that it can neither steer a log nor stop a program. A subvolume of btrfs is a
/// filesystem of its own here.
///
/// # Errors
///
/// As for [`read`], for the nearest file.
///
/// # Cost
///
/// Two system calls for each directory above.
pub fn find(dir: impl AsRef<Path>) -> Result<Option<(PathBuf, Advice)>> {
    place::find(dir.as_ref())
}

/// Reads the file in `dir`; `None` where there is none, or only one of a user without a say here:
/// see [`find`].
///
/// The file is TOML. Every key may be left out; these are the keys:
///
/// ```
/// # use vellum::Fill;
/// # let dir = tempfile::tempdir().unwrap();
/// # std::fs::write(dir.path().join(vellum_advice::FILE_NAME), r#"
/// version = 1                        # of this file; 1 if it is left out
///
/// [wal]                              # logs of Options::wal(), and others that ask to be staged
/// fill = "staged"                    # "staged", "pwrite" or "mapped"
/// preallocate = "recycle"            # as in vellum::Preallocate
/// segment_capacity_bytes = 16777216
/// prefault_bytes = 1048576
///
/// [log]                              # all other logs: the same keys, without "staged"
/// fill = "mapped"
/// preallocate = "fallocate"
///
/// [file]                             # for the crate vellum-parallel
/// method = "direct"                  # as in vellum::advice::Method
/// piece_bytes = 1048576              # a multiple of 4096, at most 1 GiB
/// threads = 2                        # from 1 to 1024
/// # "#).unwrap();
/// # let advice = vellum_advice::read(dir.path()).unwrap().unwrap();
/// # assert_eq!(advice.wal.fill, Some(Fill::Staged));
/// # assert_eq!(advice.file.threads, Some(2));
/// ```
///
/// Sizes are in bytes. A key or a section that is not known is an error, because a misspelt one
/// would be a setting that silently does not hold; a file that says a later `version` is refused
/// for the same reason.
///
/// # Errors
///
/// [`ErrorKind::InvalidOption`](vellum::ErrorKind::InvalidOption) for a file with something wrong
/// in it, which names the file, the line, the value and the valid ones; for one that is not a
/// regular file, that is longer than 64 KiB, or that others than its owner may write to. As of the
/// operating system for one that cannot be read.
pub fn read(dir: impl AsRef<Path>) -> Result<Option<Advice>> {
    place::read(dir.as_ref())
}

/// Refuses a directory in which no file would be followed, because others may write into it.
///
/// # Errors
///
/// [`ErrorKind::InvalidOption`](vellum::ErrorKind::InvalidOption) for such a directory; as of the
/// operating system for one that cannot be looked at.
pub fn check_directory(dir: impl AsRef<Path>) -> Result<()> {
    place::check_directory(dir.as_ref())
}

/// The text of a file with this content, beneath `comment`.
///
/// Numbers beyond what TOML can say (2^63 − 1) become that.
#[must_use]
pub fn to_toml(advice: &Advice, comment: &str) -> String {
    text::write(advice, comment)
}
