//! Bytes on disk and their meaning: no input or output, no atomics, no `unsafe`.
//!
//! The normative description is `docs/format.md`.

pub mod commit_record;
pub mod control;
pub mod cursor;
pub mod envelope;
pub mod frame;
pub mod gzip;
pub mod identity;
pub mod layout;
pub mod policy;
pub mod segment;
pub mod stage;
pub mod text;
pub mod utc;
pub mod zstd;

/// Version of the bytes in control file and segments; another version is refused.
pub const VERSION: u32 = 1;
/// Version of the headers of control file and geometry where `marks` has the marks that a library
/// must know to use the log. Everything else is as in version 1.
pub const MARKED_VERSION: u32 = 2;
