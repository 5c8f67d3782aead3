//! The errors of a cursor that cannot be used.

use crate::files::names::CURSORS_NAME;
use crate::log::keep::cursors::owner;
use crate::log::state::core::Core;
use crate::{Error, ErrorKind, Lsn};

pub(crate) fn missing(core: &Core, name: &str) -> Error {
    let message = format!("the log has no cursor {}", name);
    let error = Error::new(ErrorKind::NotFound, message);
    error.at_path(&core.files.dir.join(CURSORS_NAME))
}

pub(crate) fn overrun(core: &Core, name: &str, lsn: Lsn, begin: Lsn) -> Error {
    let message = format!(
        "records were removed in front of cursor {}: it would be at {lsn}, and the log begins \
         at {begin}",
        name
    );
    Error::new(ErrorKind::Trimmed, message).at_path(&core.files.dir).at_lsn(lsn)
}

pub(crate) fn backwards(core: &Core, name: &str, lsn: Lsn, now: Lsn) -> Error {
    let message = format!(
        "cursor {} is at {now}, and a commit does not move it back to {lsn}; set it instead",
        name
    );
    Error::new(ErrorKind::OutOfRange, message).at_path(&core.files.dir).at_lsn(lsn)
}

pub(crate) fn owned_by_another(core: &Core, name: &str, index: usize) -> Error {
    let who = match owner::pid(&core.files, index) {
        Some(pid) if pid == std::process::id() => {
            format!("another handle of this process, {pid}")
        }
        Some(pid) => format!("process {pid}"),
        None => "another process".into(),
    };
    let message = format!("cursor {} is owned by {who}", name);
    Error::new(ErrorKind::Busy, message).at_path(&core.files.dir)
}
