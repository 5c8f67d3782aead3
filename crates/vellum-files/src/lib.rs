//! The files of a log.
//!
//! The crate `vellum` is made of this one. It has no interface for others: any release may change
//! it. The items that `vellum` shows of it at its root are promised there.
//!
//! The code here reads and writes files. It knows no shared word, no lock between processes and no
//! open log: facts about a running log are arguments. So a function that takes nothing else can
//! reach nothing else.
//!
//! - [`format`](mod@format) is the bytes and their meaning.
//! - [`segment`] is one file: its name, opening it, reading and writing it.
//! - [`files`] is all files of a log: reading them over a [`View`](files::view::View) of it, and
//!   finding where a log ends after a crash ([`files::recover`]).
//! - [`restore`] makes a log again from shipped bytes, and finds records in them.
//! - [`error`], [`lsn`], [`identity`], [`choice`] and [`policy`] are used by all of Vellum.

#![deny(unsafe_code)]

pub mod choice;
pub mod error;
pub mod escape;
pub mod files;
pub mod format;
pub mod identity;
pub mod lsn;
pub mod policy;
pub mod record;
pub mod restore;
pub mod segment;

pub use choice::{Compression, Fill, Layout, Preallocate};
pub use error::{Error, ErrorKind, Result};
pub use files::gap::Gap;
pub use identity::{LogId, Position, WriterId};
pub use lsn::Lsn;
pub use record::{OwnedRecord, Record};

pub(crate) use vellum_sys as sys;
