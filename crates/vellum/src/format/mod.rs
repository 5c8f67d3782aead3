//! Bytes on disk and their meaning: no input or output, no atomics, no `unsafe`.
//!
//! The normative description is `docs/format.md`.

pub(crate) mod commit_path;
pub(crate) mod commit_record;
pub(crate) mod control;
pub(crate) mod cursor;
pub(crate) mod envelope;
pub(crate) mod frame;
pub(crate) mod gzip;
pub(crate) mod identity;
pub(crate) mod layout;
pub(crate) mod policy;
pub(crate) mod segment;
pub(crate) mod stage;
pub(crate) mod text;
pub(crate) mod utc;
pub(crate) mod zstd;

/// Version of the bytes in control file and segments; another version is refused.
pub(crate) const VERSION: u32 = 1;
/// Version of the headers of control file and geometry where `marks` say what a library must know
/// to use the log. Everything else is as in version 1.
pub(crate) const MARKED_VERSION: u32 = 2;
