//! The troubles: the name and the promise of each, and the filesystems that have it.
//! `ARCHITECTURE.md` has the same table.

use super::disk;
use crate::worlds::shape::Shape;

/// A fault of the storage of a log.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Trouble {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// The promise that holds in it.
    pub(crate) promise: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    FilledByItself,
    FilledByOthers,
    SizeLimit,
    Reflink,
    ShutDown,
    Failing,
    Vanished,
    Cut,
    CopyTruncate,
}

/// All of them.
pub(crate) const TROUBLES: &[Trouble] = &[
    trouble(
        "filled-by-itself",
        Kind::FilledByItself,
        "a process that fills the disk gets errors, and so does one that opens the log then; with \
         space all continue",
    ),
    trouble(
        "filled-by-others",
        Kind::FilledByOthers,
        "a process that meets a disk filled by others gets errors; with space all continue",
    ),
    trouble(
        "limit-of-file-size",
        Kind::SizeLimit,
        "a process that reaches its limit gets errors; others continue",
    ),
    trouble(
        "reflink-copies",
        Kind::Reflink,
        "a copy shares blocks, and then the disk is full: stores get errors; with space the log \
         continues",
    ),
    trouble(
        "shut-down",
        Kind::ShutDown,
        "a filesystem stops under its writers: mounted again, it has what was committed",
    ),
    trouble(
        "failing-device",
        Kind::Failing,
        "a device takes no more writes: the calls get errors; when it works again, what was \
         committed is there",
    ),
    trouble(
        "vanished-device",
        Kind::Vanished,
        "a device is taken away under its writers: the calls get errors; when it is back, what was \
         committed is there",
    ),
    trouble(
        "cut-files",
        Kind::Cut,
        "any file of the log is cut while processes use it: the calls get errors, or continue",
    ),
    trouble(
        "copytruncate",
        Kind::CopyTruncate,
        "a text file is copied and cut, as `logrotate` can do: the writers continue",
    ),
];

const fn trouble(name: &'static str, kind: Kind, promise: &'static str) -> Trouble {
    Trouble { name, kind, promise }
}

impl Kind {
    /// Whether such a log on such a disk can get into it.
    pub(crate) fn can_be(self, disk: &disk::Kind, shape: Shape) -> bool {
        match self {
            Kind::FilledByItself | Kind::FilledByOthers | Kind::SizeLimit | Kind::Cut => true,
            Kind::Reflink => disk.shares_blocks(),
            Kind::ShutDown => disk.shuts_down(),
            Kind::Failing | Kind::Vanished => disk.has_device(),
            Kind::CopyTruncate => shape.is_text(),
        }
    }

    /// Whether a disk is filled.
    pub(crate) fn fills(self) -> bool {
        matches!(self, Kind::FilledByItself | Kind::FilledByOthers)
    }

    /// How much must be there in the end.
    pub(crate) fn keeps(self) -> Keeps {
        match self {
            Kind::FilledByItself | Kind::FilledByOthers | Kind::SizeLimit | Kind::Reflink => {
                Keeps::Appended
            }
            Kind::ShutDown | Kind::Failing | Kind::Vanished => Keeps::Committed,
            Kind::Cut | Kind::CopyTruncate => Keeps::Rest,
        }
    }
}

/// The records that must be there of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeps {
    /// Whatever was acknowledged.
    Appended,
    /// The committed records.
    Committed,
    /// The rest that others have left of it: the log may report that it is damaged.
    Rest,
}

/// The trouble with this name.
pub(crate) fn find(name: &str) -> Result<&'static Trouble, String> {
    let mut found = TROUBLES.iter().filter(|trouble| trouble.name == name);
    found.next().ok_or_else(|| format!("no trouble is called {name:?}; --list names them"))
}

/// The kind of disk with this name.
pub(crate) fn find_disk(name: &str) -> Result<&'static disk::Kind, String> {
    let mut found = disk::KINDS.iter().filter(|kind| kind.name == name);
    found.next().ok_or_else(|| {
        let names: Vec<_> = disk::KINDS.iter().map(|kind| kind.name).collect();
        format!("no disk is called {name:?}, but {}", names.join(", "))
    })
}
