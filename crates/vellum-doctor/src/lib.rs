//! The command `doctor`, for `vellum` and for a program of its own, and what it shares with the
//! measurements of `vellum`: files for results, progress, a directory that always goes.

#![forbid(unsafe_code)]

mod args;
mod command;
mod ending;
mod lies;
pub mod outputs;
mod page;
pub mod progress;
pub mod scratch;

pub use args::{CompareArgs, DoctorArgs, DoctorCommand, LiesArgs};
pub use command::{code, run, taken};
