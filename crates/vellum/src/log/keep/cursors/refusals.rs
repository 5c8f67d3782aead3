//! What is said when a cursor cannot be used.

use crate::log::keep::cursors::cursor::Cursor;
use crate::log::keep::cursors::file::CursorFile;
use crate::log::state::names::CURSORS_NAME;
use crate::{Error, ErrorKind, Lsn};

impl Cursor {
    pub(crate) fn missing(&self) -> Error {
        let message = format!("the log has no cursor {}", self.name);
        let error = Error::new(ErrorKind::NotFound, message);
        error.at_path(&self.core.dir.join(CURSORS_NAME))
    }

    pub(crate) fn overrun(&self, lsn: Lsn, begin: Lsn) -> Error {
        let message = format!(
            "records were removed in front of cursor {}: it would be at {lsn}, and the log begins \
             at {begin}",
            self.name
        );
        Error::new(ErrorKind::Trimmed, message).at_path(&self.core.dir).at_lsn(lsn)
    }

    pub(crate) fn backwards(&self, lsn: Lsn, now: Lsn) -> Error {
        let message = format!(
            "cursor {} is at {now}, and a commit does not move it back to {lsn}; set it instead",
            self.name
        );
        Error::new(ErrorKind::OutOfRange, message).at_path(&self.core.dir).at_lsn(lsn)
    }

    pub(crate) fn owned_by_another(&self, index: usize) -> Error {
        let who = match CursorFile::of(&self.core).cursor_owner(index) {
            Some(pid) if pid == std::process::id() => {
                format!("another handle of this process, {pid}")
            }
            Some(pid) => format!("process {pid}"),
            None => "another process".into(),
        };
        let message = format!("cursor {} is owned by {who}", self.name);
        Error::new(ErrorKind::Busy, message).at_path(&self.core.dir)
    }
}
