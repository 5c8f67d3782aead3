//! The owner of a cursor: the process that holds the lock on a byte of `lock`.
//!
//! **If the process dies here**: the kernel releases the lock. A forked child has no copy of it.

use std::os::fd::OwnedFd;

use rustix::fs::OFlags;
use rustix::io::{self, Errno};

use crate::Result;
use crate::error::OsResult;
use crate::files::names::LOCK_NAME;
use crate::log::keep::cursors::file::CursorFile;
use crate::log::state::core::Core;
use crate::shared::participants::CURSOR_OWNER_BYTE;
use crate::sys::inherited::Kept;
use crate::sys::lock::{self, Kind};

/// The lock of the owner of the cursor at an index.
pub(crate) struct Owned {
    index: usize,
    file: Kept,
}

impl Owned {
    /// Takes the lock of the owner of the cursor at `index`; `None` where another one has it.
    pub(crate) fn take(core: &Core, index: usize) -> Result<Option<Owned>> {
        let path = core.files.dir.join(LOCK_NAME);
        let take = || {
            let file = Kept::open(&core.files.dir, &path)?;
            let fd = file.fd().ok_or(Errno::BADF)?;
            let is_mine = lock::try_lock(fd, owner_byte(index), Kind::Exclusive)?;
            io::Result::Ok(is_mine.then_some(Owned { index, file }))
        };
        take().or_os("take the owner's lock on", &path)
    }

    /// Whether this process owns the cursor at `index` by it.
    pub(crate) fn is_of(&self, index: usize) -> bool {
        self.index == index && self.file.fd().is_some()
    }
}

fn owner_byte(index: usize) -> u64 {
    CURSOR_OWNER_BYTE + index as u64
}

impl CursorFile<'_> {
    /// Whether an open file holds the lock of the owner of the cursor at `index`; where that cannot
    /// be found out, none does.
    pub(crate) fn is_cursor_owned(self, index: usize) -> bool {
        let file = self.lock_to_look_at();
        file.is_some_and(|file| lock::is_held_by_another(&file, owner_byte(index)) == Ok(true))
    }

    /// The process that owns the cursor at `index`, where it can be seen.
    pub(crate) fn cursor_owner(self, index: usize) -> Option<u32> {
        lock::holders(self.lock_to_look_at()?, owner_byte(index)).into_iter().next()
    }

    fn lock_to_look_at(self) -> Option<OwnedFd> {
        self.core.files.dir.open_file(&self.core.files.dir.join(LOCK_NAME), OFlags::RDONLY).ok()
    }
}
