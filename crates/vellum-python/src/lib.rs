//! The native part of the Python package `vellum_log`.
//!
//! `log` and `reader` are the append log as Python sees it; `lines` is the fast path of
//! `VellumHandler`, and `format/` formats as `logging.Formatter` would, byte for byte. Nothing here
//! starts a thread.
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
mod interpreter;
mod lines;
mod log;
mod options;
mod position;
mod reader;
mod stat;
mod unfinished;

use pyo3::prelude::*;

/// Native part of `vellum_log`; import that.
#[pymodule]
fn _vellum_log(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // Before anything is made that interpreters would share.
    interpreter::claim(module.py())?;
    module.add_function(wrap_pyfunction!(bus_errors::guard_bus_errors, module)?)?;
    module.add_class::<checkpoint::CheckpointEvent>()?;
    module.add_class::<cursor::Cursor>()?;
    module.add_class::<lines::LineWriter>()?;
    module.add_class::<log::Log>()?;
    module.add_class::<position::Position>()?;
    module.add_class::<reader::Backwards>()?;
    module.add_class::<reader::Reader>()?;
    module.add_class::<reader::Record>()
}
