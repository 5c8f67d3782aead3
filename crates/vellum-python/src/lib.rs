//! The native part of the Python package `vellum_log`.
//!
//! `log` and `reader` are the append log as Python sees it; `lines` is what is fast of
//! `VellumHandler`, and `format/` its way to format what `logging.Formatter` would, byte for byte.
//! Nothing here starts a thread.
//!
//! # Locks
//!
//! A lock is held only while the thread is attached to Python, and never while Python code runs or
//! an object is freed. Attached means with the GIL, or without one in a free-threaded Python, which
//! stops all attached threads before a fork and before it collects garbage, where each next calls
//! Python. So no lock is held then: a forked child finds everything in order, and no thread that is
//! stopped makes another wait.

mod bus_errors;
mod bytes;
mod checkpoint;
mod cursor;
mod error;
mod format;
mod lines;
mod log;
mod options;
mod position;
mod reader;
mod stat;

use pyo3::prelude::*;

/// Native part of `vellum_log`; import that.
#[pymodule]
mod _vellum_log {
    #[pymodule_export]
    use crate::bus_errors::guard_bus_errors;
    #[pymodule_export]
    use crate::checkpoint::CheckpointEvent;
    #[pymodule_export]
    use crate::cursor::Cursor;
    #[pymodule_export]
    use crate::lines::LineWriter;
    #[pymodule_export]
    use crate::log::Log;
    #[pymodule_export]
    use crate::position::Position;
    #[pymodule_export]
    use crate::reader::{Backwards, Reader, Record};
}
