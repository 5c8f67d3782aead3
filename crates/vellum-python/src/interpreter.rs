//! One interpreter of a process uses this module.
//!
//! The classes of this module are one set of objects for the whole process. From Python 3.12 on
//! each interpreter numbers the versions of classes by itself, and looks up attributes by these
//! numbers: two interpreters that share a class take one class for another. So the second one is
//! refused.

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// The first Python whose interpreters cannot share classes.
const FIRST_SEPARATE: (u8, u8) = (3, 12);

const REFUSED: &str = "another interpreter of this process uses vellum_log already, and from \
    Python 3.12 on only one can; under mod_wsgi, set 'WSGIApplicationGroup %{GLOBAL}' and give \
    each application a WSGIDaemonProcess of its own";

/// Takes the module for this interpreter, or refuses because another one has it.
pub(crate) fn claim(py: Python<'_>) -> PyResult<()> {
    /// The module `sys` of the interpreter that came first: each has its own.
    static SYS: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let sys = py.import("sys")?;
    let first = SYS.get_or_init(py, || sys.clone().unbind());
    let is_refused = py.version_info() >= FIRST_SEPARATE && !sys.is(first);
    if is_refused { Err(PyImportError::new_err(REFUSED)) } else { Ok(()) }
}
