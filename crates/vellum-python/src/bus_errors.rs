//! Storage that fails under a mapping.

use pyo3::prelude::*;

use crate::error::Raise;

/// Have Vellum answer a SIGBUS that its own mappings raise, in a program that handles it itself.
///
/// Needed after `faulthandler.enable()`, or where another library has set a handler: then storage
/// that fails under a mapping is an exception and does not end the process. Everything else is
/// passed on to the handler that was there.
#[pyfunction]
pub(crate) fn guard_bus_errors(py: Python<'_>) -> PyResult<()> {
    vellum::guard_bus_errors().or_raise(py)
}
