//! What a measurement advises for the files of a directory: the content of `vellum.toml`.
//!
//! `vellum advise --write` makes the file, [`Options`](crate::Options) follows it when a log is
//! created below. It may make a log faster or slower, and never changes what is promised: only the
//! program decides whether records are staged, and a mapping that could kill the process is never
//! taken from a file (`docs/decisions/0008-advice-file.md`).

mod follow;
mod known;
mod place;
mod toml;

use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::error::OsResult;
use crate::sys::filesystem::Filesystem;
use crate::{Fill, Method, Preallocate, Result, sys};

/// What a measurement advises for the files of a directory.
///
/// It is kept in a file [`Advice::FILE_NAME`] in that directory, in a small part of TOML. Every
/// key may be left out; what is there is this:
///
/// ```
/// # use vellum::{Advice, Fill};
/// # let dir = tempfile::tempdir().unwrap();
/// # std::fs::write(dir.path().join(Advice::FILE_NAME), r#"
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
/// method = "direct"                  # as in vellum::Method
/// piece_bytes = 1048576
/// threads = 2
/// # "#).unwrap();
/// # let advice = Advice::read(dir.path()).unwrap().unwrap();
/// # assert_eq!(advice.wal.fill, Some(Fill::Staged));
/// # assert_eq!(advice.file.threads, Some(2));
/// ```
///
/// Strings stand in double quotes and have no escapes; numbers are decimal, sizes are in bytes. A
/// key or a section that is not known is an error, because a misspelt one would be a setting that
/// silently does not hold; a file that says a later `version` is refused for the same reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Advice {
    /// For logs that commit: those of [`Options::wal`](crate::Options::wal), and others that ask
    /// for [`Fill::Staged`].
    pub wal: LogAdvice,
    /// For all other logs. Its `fill` is never [`Fill::Staged`].
    pub log: LogAdvice,
    /// For one large file that several threads write with the crate `vellum-parallel`.
    pub file: FileAdvice,
}

/// What is advised for logs; `None` where nothing is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogAdvice {
    /// How file space is made ready.
    pub preallocate: Option<Preallocate>,
    /// Which way records take into the file.
    pub fill: Option<Fill>,
    /// Bytes of log a segment holds, as in
    /// [`Options::segment_capacity_bytes`](crate::Options::segment_capacity_bytes).
    pub segment_capacity_bytes: Option<u64>,
    /// How far ahead the process that creates the log makes pages ready, as in
    /// [`Options::prefault_bytes`](crate::Options::prefault_bytes). It is not stored with the
    /// log, so who opens the log later has its own.
    pub prefault_bytes: Option<u64>,
}

/// What is advised for one large file that several threads write; `None` where nothing is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileAdvice {
    /// Which way pieces take into the file.
    pub method: Option<Method>,
    /// Bytes to write at a time: a multiple of 4096, at most 1 GiB.
    pub piece_bytes: Option<u64>,
    /// How many threads write: from 1 to 1024.
    pub threads: Option<u32>,
}

impl Advice {
    /// Name of the file in its directory.
    pub const FILE_NAME: &'static str = "vellum.toml";

    /// Reads the file in `dir`; `None` where there is none, or only one of somebody who has no say
    /// here: see [`Advice::find`].
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidOption`](crate::ErrorKind::InvalidOption) for a file with something
    /// wrong in it, which names the file, the line, the value and what would be right; for one
    /// that is not a regular file, that is longer than 64 KiB, or that everybody may write to. As
    /// of the operating system for one that cannot be read.
    pub fn read(dir: impl AsRef<Path>) -> Result<Option<Advice>> {
        place::read(dir.as_ref())
    }

    /// Finds the file that holds for a new log in `dir`: the one in `dir`, or else in the nearest
    /// directory above on the same filesystem. It is taken whole, and no other one counts.
    ///
    /// Only a file of root, of the user of this process or of the owner of the directory it is in
    /// is taken; somebody else's, say in `/tmp`, is passed over, so that it can neither steer a
    /// log nor stop a program. A subvolume of btrfs is a filesystem of its own here.
    ///
    /// # Errors
    ///
    /// As for [`Advice::read`], for the nearest file.
    ///
    /// # Cost
    ///
    /// Two system calls for each directory above.
    pub fn find(dir: impl AsRef<Path>) -> Result<Option<(PathBuf, Advice)>> {
        place::find(dir.as_ref())
    }

    /// What is done in `dir` where nothing is advised: what is known of its filesystem, without
    /// measuring anything. `None` where it depends on the file or the machine.
    ///
    /// # Errors
    ///
    /// As of the operating system where there is no such directory.
    pub fn known(dir: impl AsRef<Path>) -> Result<Advice> {
        let dir = dir.as_ref();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let fd = sys::file::open(dir, flags, 0).or_os("open the directory", dir)?;
        let filesystem = Filesystem::of(&fd).or_os("tell the filesystem of", dir)?;
        Ok(known::advice(filesystem))
    }

    /// The text of a file with this content, beneath `comment`.
    ///
    /// Numbers beyond what TOML can say (2^63 − 1) become that.
    #[must_use]
    pub fn to_toml(&self, comment: &str) -> String {
        toml::write(self, comment)
    }
}
