//! Making a log again from shipped bytes, and finding records in them.

pub mod decode;
mod note;
pub mod options;
pub mod restorer;
mod room;
pub mod shape;

/// Where a restore or a repair has not finished.
pub const BROKEN_OFF: &str = "a log is being restored or repaired here, or that was \
    broken off; let it finish, resume a restore with `vellum restore --resume`, or remove the \
    directory";
