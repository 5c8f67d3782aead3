//! The process that ships: it holds the lock on a byte of `lock`.

use std::os::fd::OwnedFd;

use crate::Result;
use crate::files::Files;
use crate::log::state::byte_lock::{self, ByteLock};
use crate::log::state::core::Core;
use crate::shared::participants::{self, Owner, SHIPPER_BYTE, Standing};
use crate::sys::lock;

/// Takes the right to ship; `None` where another handle has it.
pub(crate) fn elect(files: &Files) -> Result<Option<ByteLock>> {
    ByteLock::take(files, SHIPPER_BYTE, "take the shipper's lock on")
}

/// Whether some process ships the log. Where that cannot be found out, one does.
pub(crate) fn is_shipped_by_somebody(core: &Core) -> bool {
    if let Ok(writer) = core.writer() {
        // Another open file than the one that holds the lock, in the shipper itself too.
        let held = lock::is_held_by_another(writer.attachment.lock_file(), SHIPPER_BYTE);
        return held != Ok(false);
    }
    match byte_lock::file(&core.files) {
        Some(file) => lock::is_held_by_another(&file, SHIPPER_BYTE) != Ok(false),
        None => is_holder_there(core),
    }
}

/// The process that ships, where it can be seen.
pub(crate) fn shipper_pid(core: &Core) -> Option<u32> {
    let seen = |file: OwnedFd| lock::holders(file, SHIPPER_BYTE).into_iter().next();
    byte_lock::file(&core.files).and_then(seen).or_else(|| {
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
