//! The only calls to the operating system, and the only mappings.
//!
//! # Safety
//!
//! This is one of the two rooms with `unsafe` code (the other is `shared`). What must hold here:
//! a mapping stays in place as long as its [`Map`] lives, is reached only through it, and every
//! access is checked against its length first.

pub(crate) mod barrier;
pub(crate) mod clock;
pub(crate) mod dir;
pub(crate) mod file;
pub(crate) mod filesystem;
pub(crate) mod fork;
pub(crate) mod inherited;
pub(crate) mod lock;
pub(crate) mod map;
pub(crate) mod process;
pub(crate) mod wait;

pub(crate) use dir::Dir;
pub(crate) use map::Map;
