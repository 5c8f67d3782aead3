//! What is recommended: a purpose, and ways to serve it.

use std::fmt;

use serde::{Serialize, Serializer};
use vellum::{Fill, Options, Preallocate, Tuning};
use vellum_parallel::Method;

use crate::bytes::size;
use crate::names::named;

named! {
    /// What files are written for.
    pub enum Purpose, "is not a purpose" {
        /// A log whose records are committed: [`Options::wal`].
        Wal = "wal",
        /// A log that several processes append to, without commits: [`Options::events`].
        Log = "log",
        /// One large file, written once and synced: [`vellum_parallel`].
        File = "file",
    }
}

impl Purpose {
    /// What it is, for people.
    pub const fn title(self) -> &'static str {
        match self {
            Purpose::Wal => "a log that commits",
            Purpose::Log => "a log that processes share",
            Purpose::File => "one large file",
        }
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
            options.tuning(Tuning::new().fill(self.fill).preallocate(self.preallocate))
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
