//! System calls, and mappings of files.
//!
//! `vellum` and `vellum-parallel` share this crate. It has no interface for others: any release may
//! change it. Nothing here knows what a log is.
//!
//! # Safety
//!
//! The modules with `unsafe` code are named below, and `file` has one function; the compiler
//! refuses it in all others. What must hold here: a mapping stays in place as long as its [`Map`]
//! lives, it is reached only through the `Map`, and every access is checked against its length
//! first.

#![deny(unsafe_code)]

pub mod barrier;
pub mod clock;
pub mod dir;
pub mod file;
pub mod filesystem;
#[allow(unsafe_code)]
pub mod fork;
#[allow(unsafe_code)]
pub mod inherited;
#[allow(unsafe_code)]
pub mod lock;
#[allow(unsafe_code)]
pub mod map;
pub mod process;
pub mod wait;

pub use dir::Dir;
pub use map::Map;
