//! The owner of a cursor: the process that holds the lock on a byte of `lock`.

use crate::Result;
use crate::files::Files;
use crate::log::state::byte_lock::{self, ByteLock};
use crate::shared::participants::CURSOR_OWNER_BYTE;
use crate::sys::lock;

/// Takes the lock of the owner of the cursor at `index`; `None` where another one has it.
pub(crate) fn take(files: &Files, index: usize) -> Result<Option<ByteLock>> {
    ByteLock::take(files, byte(index), "take the owner's lock on")
}

/// The byte of `lock` that is for the owner of the cursor at `index`.
pub(crate) fn byte(index: usize) -> u64 {
    CURSOR_OWNER_BYTE + index as u64
}

/// Whether an open file holds the lock of the owner of the cursor at `index`; where that cannot be
/// found out, none does.
pub(crate) fn is_owned(files: &Files, index: usize) -> bool {
    let file = byte_lock::file(files);
    file.is_some_and(|file| lock::is_held_by_another(&file, byte(index)) == Ok(true))
}

/// The process that owns the cursor at `index`, where it can be seen.
pub(crate) fn pid(files: &Files, index: usize) -> Option<u32> {
    lock::holders(byte_lock::file(files)?, byte(index)).into_iter().next()
}
