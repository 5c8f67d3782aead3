//! `vellum_log.Position`: a position that is stored outside of the log.

use std::time::{Duration, SystemTime};

use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple, PyType};

use crate::error::Raise;

/// A position that can be stored: which log it is of (`log`, hexadecimal), from which `epoch`, and
/// the `lsn` in it. `str()` of it is one line, which `Position(text)` reads again.
///
/// A bare LSN means something else in another log, and may after a power cut or a truncation. This
/// is the same record or an error.
#[pyclass(module = "vellum_log", frozen, eq, hash, from_py_object)]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Position(pub(crate) vellum::Position);

#[pymethods]
impl Position {
    #[new]
    fn new(py: Python<'_>, text: &str) -> PyResult<Position> {
        text.parse().map(Position).or_raise(py)
    }

    /// The id of the log, 32 hexadecimal digits.
    #[getter]
    fn log(&self) -> String {
        self.0.log.to_string()
    }

    /// The epoch of the log in which the position was taken.
    #[getter]
    fn epoch(&self) -> u64 {
        self.0.epoch
    }

    /// The position in the log.
    #[getter]
    fn lsn(&self) -> u64 {
        self.0.lsn.get()
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("Position('{}')", self.0)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let class: Bound<'py, PyType> = py.get_type::<Position>();
        (class, (PyString::new(py, &self.0.to_string()),)).into_pyobject(py)
    }
}

/// Where to start to read: a bare LSN, or a position.
#[derive(FromPyObject)]
pub(crate) enum Start {
    Lsn(u64),
    Stored(Position),
}

/// A moment: a `datetime` with its time zone, or nanoseconds since 1970.
#[derive(FromPyObject)]
pub(crate) enum Moment {
    Nanos(u64),
    Time(SystemTime),
}

impl Moment {
    pub(crate) fn to_time(&self) -> SystemTime {
        match self {
            Moment::Nanos(nanos) => SystemTime::UNIX_EPOCH + Duration::from_nanos(*nanos),
            Moment::Time(time) => *time,
        }
    }
}

impl Start {
    /// A reader that starts there.
    pub(crate) fn reader(
        &self,
        log: &vellum::Log,
        is_next: bool,
    ) -> vellum::Result<vellum::Reader> {
        match self {
            Start::Lsn(lsn) => log.reader(vellum::Lsn::new(*lsn)),
            Start::Stored(position) if is_next => log.reader_at_next(position.0),
            Start::Stored(position) => log.reader_at(position.0),
        }
    }
}
