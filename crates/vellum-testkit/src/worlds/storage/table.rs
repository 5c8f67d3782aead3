//! The troubles: what each is called and promises, and where it can be had. `docs/worlds.md` has the
//! same table.

use super::disk;
use crate::worlds::shape::Shape;

/// What goes wrong with the storage of a log.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Trouble {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// What holds in it.
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
        "who fills a disk gets errors, and so does who opens it then; with space all go on",
    ),
    trouble(
        "filled-by-others",
        Kind::FilledByOthers,
        "who meets a disk that others have filled gets errors; with space all go on",
    ),
    trouble(
        "limit-of-file-size",
        Kind::SizeLimit,
        "who may write no further gets errors; others go on",
    ),
    trouble(
        "reflink-copies",
        Kind::Reflink,
        "a copy that shares blocks, and then a full disk: who stores gets errors; with space all go on",
    ),
    trouble(
        "shut-down",
        Kind::ShutDown,
        "a filesystem stops under its writers: mounted again, it has what was committed",
    ),
    trouble(
        "failing-device",
        Kind::Failing,
        "a device takes no more writes: who writes gets errors",
    ),
    trouble("vanished-device", Kind::Vanished, "a device goes under its writers: they get errors"),
    trouble(
        "cut-files",
        Kind::Cut,
        "any file of the log is cut under those that use it: they get errors, or go on",
    ),
    trouble(
        "copytruncate",
        Kind::CopyTruncate,
        "a text file is copied and cut, as `logrotate` can do: nobody ends, lines before it are gone",
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

    /// Whether those that got an error have to go on in the end.
    pub(crate) fn is_over(self) -> bool {
        matches!(self, Kind::FilledByItself | Kind::FilledByOthers | Kind::Reflink)
    }

    /// How much must be there in the end.
    pub(crate) fn keeps(self) -> Keeps {
        match self {
            Kind::FilledByItself | Kind::FilledByOthers | Kind::SizeLimit | Kind::Reflink => {
                Keeps::Appended
            }
            Kind::ShutDown => Keeps::Committed,
            // A loop device takes a write for whole that has found room for its first bytes. What
            // an honest one has kept is shown by `vellum-powercut`.
            Kind::Failing | Kind::Vanished | Kind::Cut | Kind::CopyTruncate => Keeps::Nothing,
        }
    }
}

/// What must be there of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeps {
    /// Whatever was acknowledged.
    Appended,
    /// What was committed.
    Committed,
    /// Others have taken it away: it may say that it is damaged.
    Nothing,
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
