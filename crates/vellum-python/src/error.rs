//! From Vellum's errors to the exceptions of `vellum_log.errors`.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// Raises what Vellum answered.
pub(crate) trait Raise<T> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> Raise<T> for vellum::Result<T> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| exception(py, &error))
    }
}

/// The exception for an error: Python's own table says which class its kind has.
pub(crate) fn exception(py: Python<'_>, error: &vellum::Error) -> PyErr {
    static FROM_NATIVE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let made = FROM_NATIVE.import(py, "vellum_log.errors", "_from_native").and_then(|make| {
        let (kind, lsn) = (error.kind() as u32, error.lsn().map(vellum::Lsn::get));
        make.call1((kind, error.to_string(), error.raw_os_error(), error.path(), lsn))
    });
    made.map_or_else(|failed| failed, PyErr::from_value)
}
