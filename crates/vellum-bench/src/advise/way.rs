//! What is recommended: a purpose, and ways to serve it.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};
use vellum::{Fill, Options, Preallocate};
use vellum_parallel::Method;

use crate::error::{Error, Result, named};
use crate::report::size;

/// What files are written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A log whose records are committed: [`Options::wal`].
    Wal,
    /// A log that several processes append to, without commits: [`Options::new`].
    Log,
    /// One large file, written once and synced: [`vellum_parallel`].
    File,
}

impl Purpose {
    /// All of them, in the order in which they are measured.
    pub const ALL: [Purpose; 3] = [Purpose::Wal, Purpose::Log, Purpose::File];

    /// The name on a command line, in a report and in `vellum.toml`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Purpose::Wal => "wal",
            Purpose::Log => "log",
            Purpose::File => "file",
        }
    }

    /// What it is, for people.
    pub const fn title(self) -> &'static str {
        match self {
            Purpose::Wal => "a log that commits",
            Purpose::Log => "a log that processes share",
            Purpose::File => "one large file",
        }
    }
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Purpose {
    type Err = Error;

    fn from_str(text: &str) -> Result<Purpose> {
        named(Purpose::ALL, Purpose::as_str, text, "is not a purpose")
    }
}

impl Serialize for Purpose {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// A way to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Log(LogWay),
    File(FileWay),
}

/// How a log is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LogWay {
    pub(super) fill: Fill,
    pub(super) preallocate: Preallocate,
    /// Is it what the library does by itself? Then it is asked for nothing.
    pub(super) is_default: bool,
}

/// How a large file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileWay {
    pub(super) method: Method,
    pub(super) piece_bytes: u64,
    pub(super) threads: u32,
    /// Is the method the one that the library chooses by itself? Then it is asked for none.
    pub(super) is_default: bool,
}

impl Way {
    pub(super) fn is_default(&self) -> bool {
        match self {
            Way::Log(way) => way.is_default,
            Way::File(way) => way.is_default,
        }
    }
}

impl FileWay {
    pub(super) const fn new(method: Method, piece_bytes: u64, threads: u32) -> FileWay {
        FileWay { method, piece_bytes, threads, is_default: false }
    }
}

impl LogWay {
    pub(super) const fn new(fill: Fill, preallocate: Preallocate) -> LogWay {
        LogWay { fill, preallocate, is_default: false }
    }

    /// `options` with what this way says.
    pub(super) fn on(&self, options: Options) -> Options {
        if self.is_default {
            options
        } else {
            options.fill(self.fill).preallocate(self.preallocate)
        }
    }
}

impl fmt::Display for LogWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.fill, self.preallocate)
    }
}

impl fmt::Display for FileWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FileWay { method, piece_bytes, threads, .. } = self;
        let plural = if *threads == 1 { "" } else { "s" };
        write!(f, "{method}, {} pieces, {threads} thread{plural}", size(*piece_bytes))
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let way: &dyn fmt::Display = match self {
            Way::Log(way) => way,
            Way::File(way) => way,
        };
        if self.is_default() { write!(f, "default ({way})") } else { way.fmt(f) }
    }
}
