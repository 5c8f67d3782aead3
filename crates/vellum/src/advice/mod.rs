//! The advice of a measurement for the files of a directory, and the choices without one.
//!
//! A program hands in how to find advice; it is followed when a log is created. It may make a log
//! faster or slower, and never changes what is promised: only the program decides whether records
//! are staged, and a mapping that could kill the process is never taken from advice
//! (`docs/decisions/0008-advice-file.md`).

mod follow;
mod known;

pub use crate::options::advice::{Advice, AdviceSource, FileAdvice, LogAdvice};
pub use crate::options::method::Method;
