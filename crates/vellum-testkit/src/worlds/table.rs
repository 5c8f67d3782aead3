//! The worlds: the name and the promise of each. `ARCHITECTURE.md` has the same table.

use super::ledger::Keeps;
use super::shape::Shape;

/// A world that logs have to live in.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// The promise that holds in it.
    pub(crate) promise: &'static str,
}

/// The difference of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Plain,
    ForkBefore(First),
    ForkAfter(First),
    ForkOften,
    Exec,
    Relative,
    Renamed,
    Descriptors,
    FileSize,
    FileSizeIgnored,
    Memory,
    Root,
    Group,
    Umask,
    Closed,
    Traversed,
    ShmPrivate,
    ShmSmall,
    ShmFull,
    ShmAbsent,
    ShmCleared,
    NoBoot,
    SomeBoot,
    Pid,
    CopyClosed,
    CopyLiving,
    Older,
    Snapshot,
    Ahead,
    Stopped,
    Links,
}

/// Which side of a fork closes the log first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum First {
    Parent,
    Child,
}

/// Worlds of one area exclude each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Area {
    None,
    Life,
    Path,
    Limit,
    User,
    Memory,
    Boot,
    Pid,
    Image,
    Clock,
    Stop,
    Links,
}

/// All of them.
pub(crate) const WORLDS: &[World] = &[
    world("plain", Kind::Plain, "nothing that was acknowledged is lost when writers are killed"),
    world(
        "fork-then-open-parent-closes-first",
        Kind::ForkBefore(First::Parent),
        "two processes of one fork are like any two",
    ),
    world(
        "fork-then-open-child-closes-first",
        Kind::ForkBefore(First::Child),
        "two processes of one fork are like any two",
    ),
    world(
        "open-then-fork-parent-closes-first",
        Kind::ForkAfter(First::Parent),
        "the child counts as a participant until it exits, and continues to append",
    ),
    world(
        "open-then-fork-child-closes-first",
        Kind::ForkAfter(First::Child),
        "the parent continues as before",
    ),
    world(
        "fork-while-another-thread-opens",
        Kind::ForkOften,
        "children that stay alive delay no process: others open, commit and close",
    ),
    world("exec", Kind::Exec, "the old program counts as dead; the new one opens the log again"),
    world(
        "relative-path-then-chdir",
        Kind::Relative,
        "the log is the directory that was opened, wherever the process goes",
    ),
    world(
        "parent-renamed",
        Kind::Renamed,
        "processes with the log open continue; one that opens it by its new name joins them",
    ),
    world(
        "few-descriptors",
        Kind::Descriptors,
        "a process without descriptors gets errors; others are not delayed, nothing is poisoned",
    ),
    world(
        "small-file-size-limit",
        Kind::FileSize,
        "a process at its limit gets errors and is not killed; no other process is delayed",
    ),
    world(
        "small-file-size-limit-ignored",
        Kind::FileSizeIgnored,
        "the same where SIGXFSZ is ignored, as Python does",
    ),
    world(
        "little-address-space",
        Kind::Memory,
        "a process that cannot map gets errors; no other process is delayed, nothing is poisoned",
    ),
    world(
        "root-beside-service-user",
        Kind::Root,
        "root may do anything to the log of a service, and the service continues",
    ),
    world(
        "users-of-one-group",
        Kind::Group,
        "two users share a log that their group may write; either may make its files",
    ),
    world(
        "umask-077",
        Kind::Umask,
        "the umask of the process that makes a file shuts no process out",
    ),
    world(
        "parent-0700",
        Kind::Closed,
        "a log in a directory that is closed to others is like any other",
    ),
    world(
        "parent-0711",
        Kind::Traversed,
        "a parent directory that may not be read is no reason to fail",
    ),
    world(
        "shm-private",
        Kind::ShmPrivate,
        "processes that each have a /dev/shm of their own share the log, and lose nothing",
    ),
    world("shm-64-mib", Kind::ShmSmall, "the log needs no more of /dev/shm than there is"),
    world("shm-full", Kind::ShmFull, "the log does without /dev/shm"),
    world("shm-absent", Kind::ShmAbsent, "the log does without /dev/shm"),
    world("shm-cleared", Kind::ShmCleared, "nothing is lost when others clear /dev/shm"),
    world(
        "no-boot-id",
        Kind::NoBoot,
        "an unknown boot counts as another: what was committed is there",
    ),
    world(
        "no-boot-id-for-some",
        Kind::SomeBoot,
        "a process that does not know the boot joins one that does; committed records are there",
    ),
    world(
        "other-pid-namespace",
        Kind::Pid,
        "processes of several PID namespaces see who of the others is alive",
    ),
    world(
        "copy-of-closed-log",
        Kind::CopyClosed,
        "a copy opens with everything that was committed",
    ),
    world(
        "copy-of-living-log",
        Kind::CopyLiving,
        "a copy made while others write, without an error of `cp`, has what was committed before; \
         a framed one may say that it is damaged, and a repair saves that",
    ),
    world(
        "older-image-put-back",
        Kind::Older,
        "the log opens with everything that was committed when the image was taken",
    ),
    world(
        "btrfs-snapshot",
        Kind::Snapshot,
        "a snapshot opens with everything that was committed when it was taken",
    ),
    world(
        "names-ahead-of-the-clock",
        Kind::Ahead,
        "a log whose newest file was named ten years ahead continues, in new files too",
    ),
    world("stopped", Kind::Stopped, "a stopped process continues later as before; nothing is lost"),
    world(
        "planted-links",
        Kind::Links,
        "links planted in the log's directory change no file elsewhere, nor its mode",
    ),
];

const fn world(name: &'static str, kind: Kind, promise: &'static str) -> World {
    World { name, kind, promise }
}

impl Kind {
    pub(crate) fn area(self) -> Area {
        use Kind::*;
        match self {
            Plain => Area::None,
            ForkBefore(_) | ForkAfter(_) | ForkOften | Exec => Area::Life,
            Relative | Renamed => Area::Path,
            Descriptors | FileSize | FileSizeIgnored | Memory => Area::Limit,
            Root | Group | Umask | Closed | Traversed => Area::User,
            ShmPrivate | ShmSmall | ShmFull | ShmAbsent | ShmCleared => Area::Memory,
            NoBoot | SomeBoot => Area::Boot,
            Pid => Area::Pid,
            CopyClosed | CopyLiving | Older | Snapshot => Area::Image,
            Ahead => Area::Clock,
            Stopped => Area::Stop,
            Links => Area::Links,
        }
    }

    /// Why it does not hold yet in such logs, where that is known: then a fault does not count.
    pub(crate) fn known(self, _shape: Shape) -> Option<&'static str> {
        None
    }

    /// Whether a worker's operations may fail in it.
    pub(crate) fn may_fail(self, worker: usize) -> bool {
        match self.area() {
            Area::Limit => is_odd_one(worker),
            // A user that may plant them may make calls fail; but nothing else.
            Area::Links => true,
            _ => false,
        }
    }

    /// How much is there when the log is opened afterwards, in a world like ours.
    pub(crate) fn keeps(self) -> Keeps {
        match self {
            Kind::NoBoot | Kind::SomeBoot => Keeps::Committed,
            _ => Keeps::Appended,
        }
    }
}

/// In most worlds every second worker is the one that is different.
pub(crate) fn is_odd_one(worker: usize) -> bool {
    worker % 2 == 1
}

/// The world with this name.
pub(crate) fn find(name: &str) -> Result<&'static World, String> {
    WORLDS
        .iter()
        .find(|world| world.name == name)
        .ok_or_else(|| format!("no world is called {name:?}; --list names them"))
}

/// The worlds with these names, joined by `+`.
pub(crate) fn find_all(names: &str) -> Result<Vec<&'static World>, String> {
    names.split('+').map(find).collect()
}

/// The name of a campaign.
pub(crate) fn title(worlds: &[&World]) -> String {
    worlds.iter().map(|world| world.name).collect::<Vec<_>>().join("+")
}

/// Whether a process can be in all of these worlds at once.
pub(crate) fn agree(worlds: &[&World]) -> bool {
    // Some of those open the log late, under the name that it had.
    if has(worlds, Kind::Renamed) && worlds.iter().any(|world| world.kind.area() == Area::Life) {
        return false;
    }
    // Its second thread needs memory of its own.
    if has(worlds, Kind::ForkOften) && has(worlds, Kind::Memory) {
        return false;
    }
    worlds.iter().enumerate().all(|(index, one)| {
        let area = one.kind.area();
        area != Area::None && worlds[..index].iter().all(|other| other.kind.area() != area)
    })
}

/// Whether they have `kind` among them.
pub(crate) fn has(worlds: &[&World], kind: Kind) -> bool {
    worlds.iter().any(|world| world.kind == kind)
}
