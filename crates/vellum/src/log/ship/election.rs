//! The shipper: the process that holds the lock on a byte of `lock`.
//!
//! **If the process dies here**: the kernel releases the lock. A forked child has no copy of it.

use std::os::fd::OwnedFd;

use rustix::fs::OFlags;
use rustix::io::{self, Errno};

use crate::Result;
use crate::error::OsResult;
use crate::files::names::LOCK_NAME;
use crate::log::state::core::Core;
use crate::shared::participants::{self, Owner, SHIPPER_BYTE, Standing};
use crate::sys::inherited::Kept;
use crate::sys::lock::{self, Kind};

/// The right to ship, held until dropped.
pub(crate) struct Elected {
    file: Kept,
}

impl Elected {
    /// Takes the right to ship; `None` where another one has it.
    pub(crate) fn take(core: &Core) -> Result<Option<Elected>> {
        let path = core.files.dir.join(LOCK_NAME);
        let take = || {
            let file = Kept::open(&core.files.dir, &path)?;
            let fd = file.fd().ok_or(Errno::BADF)?;
            let is_mine = lock::try_lock(fd, SHIPPER_BYTE, Kind::Exclusive)?;
            io::Result::Ok(is_mine.then_some(Elected { file }))
        };
        take().or_os("take the shipper's lock on", &path)
    }

    /// Whether this process has it: a forked child of the one that took it has not.
    pub(crate) fn is_mine(&self) -> bool {
        self.file.fd().is_some()
    }
}

/// Whether some process ships the log. Where that cannot be found out, one does.
pub(crate) fn is_shipped_by_somebody(core: &Core) -> bool {
    if let Ok(writer) = core.writer() {
        // Another open file than the one that holds the lock, in the shipper itself too.
        let held = lock::is_held_by_another(writer.attachment.lock_file(), SHIPPER_BYTE);
        return held != Ok(false);
    }
    match shipper_lock_file(core) {
        Some(file) => lock::is_held_by_another(&file, SHIPPER_BYTE) != Ok(false),
        None => is_holder_there(core),
    }
}

/// The process that ships, where it can be seen.
pub(crate) fn shipper_pid(core: &Core) -> Option<u32> {
    let seen = |file: OwnedFd| lock::holders(file, SHIPPER_BYTE).into_iter().next();
    shipper_lock_file(core).and_then(seen).or_else(|| {
        let place = participants::place_of(core.words(), noted_shipper(core)?)?;
        Some(participants::incarnation(place).pid)
    })
}

/// For a process that may not open the file with the locks: the answer of the words and `/proc`.
fn is_holder_there(core: &Core) -> bool {
    let standing = |holder| core.outsider().standing(holder);
    noted_shipper(core).is_some_and(|holder| standing(holder) != Standing::Gone)
}

fn noted_shipper(core: &Core) -> Option<Owner> {
    core.words().ship.holder()
}

fn shipper_lock_file(core: &Core) -> Option<OwnedFd> {
    core.files.dir.open_file(&core.files.dir.join(LOCK_NAME), OFlags::RDONLY).ok()
}
