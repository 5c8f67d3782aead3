//! Named cursors: their file, the records that they keep, and the handle of one.

pub(crate) mod cursor;
pub(crate) mod file;
pub(crate) mod held;
mod owner;
mod refusals;
pub(crate) mod stat;
