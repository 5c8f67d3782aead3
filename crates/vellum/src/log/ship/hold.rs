//! The records that the log keeps for the shipper: from a named cursor on, also while no shipper
//! runs.

use std::sync::Arc;

use crate::log::keep::cursors::cursor::{Cursor, CursorHold};
use crate::log::keep::cursors::file::CursorFile;
use crate::log::ship::{election, saved};
use crate::log::state::core::Core;
use crate::{Error, ErrorKind, Lsn, Result};

/// The cursor of the shipper. A user's own cursor may be called `shipper`.
const NAME: &str = "vellum-ship";

/// From where on records are kept for the shipper, if they are.
pub(crate) fn held_for_shipper(core: &Core) -> Result<Option<Lsn>> {
    let entries = CursorFile::of(core).cursor_entries()?.into_iter().map(|(_, entry)| entry);
    let mut ours = entries.filter(|entry| entry.name == NAME && entry.holds);
    Ok(ours.next().map(|entry| CursorFile::of(core).within(entry).lsn))
}

/// Keeps the records from `from` on, or from where they are kept already, but no more than
/// `max_bytes`. The cursor is owned as long as the returned handle lives.
pub(crate) fn hold(core: &Arc<Core>, from: Lsn, max_bytes: Option<u64>) -> Result<Cursor> {
    loop {
        // Retention removes more at any moment, until the cursor holds: then the next try is behind
        // that.
        match try_to_hold(core, from.max(core.begin()), max_bytes) {
            Err(error) if error.kind() == ErrorKind::Trimmed => {}
            held => return held,
        }
    }
}

fn try_to_hold(core: &Arc<Core>, from: Lsn, max_bytes: Option<u64>) -> Result<Cursor> {
    let cursor = Cursor::open(Arc::clone(core), NAME, from)?;
    cursor.own()?;
    cursor.skip_overrun()?;
    let hold = max_bytes.map_or_else(CursorHold::new, |bytes| CursorHold::new().max_bytes(bytes));
    cursor.hold(hold)?;
    Ok(cursor)
}

/// Keeps nothing for the shipper any more, and forgets where it has shipped to; false if there was
/// neither.
pub(crate) fn detach(core: &Arc<Core>) -> Result<bool> {
    core.writer()?;
    let Some(_elected) = election::elect(&core.files)? else {
        let message = "a process ships this log: end it before the log is detached";
        return Err(Error::new(ErrorKind::Busy, message).at_path(&core.files.dir));
    };
    let is_kept =
        CursorFile::of(core).cursor_entries()?.iter().any(|(_, entry)| entry.name == NAME);
    if is_kept {
        Cursor::open(Arc::clone(core), NAME, Lsn::ZERO)?.remove()?;
    }
    Ok(saved::forget(core)? || is_kept)
}
