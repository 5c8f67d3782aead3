//! Making a log again from what was shipped, and finding records in that.

pub mod decode;
mod note;
pub mod options;
pub mod restorer;
mod room;
pub mod shape;
