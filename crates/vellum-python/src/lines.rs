//! Where log records of Python become lines: the fast path of `VellumHandler`.

use pyo3::exceptions::{PyException, PyRecursionError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::error::Raise;
use crate::format::Formatters;
use crate::log::Log;

/// Formats log records and appends them to a text log, each as one record.
#[pyclass(module = "vellum_log._vellum_log", frozen)]
pub(crate) struct LineWriter {
    /// Held beside the `Log` of Python, so that a record on its way arrives when that is closed.
    log: vellum::Log,
    encoding: String,
    errors: String,
    /// Level from which a record is committed.
    commit_from: Option<i64>,
    formatters: Formatters,
}

#[pymethods]
impl LineWriter {
    #[new]
    fn new(
        log: &Log,
        encoding: String,
        errors: String,
        commit_from: Option<i64>,
    ) -> PyResult<LineWriter> {
        let (log, formatters) = (log.open()?, Formatters::default());
        Ok(LineWriter { log, encoding, errors, commit_from, formatters })
    }

    /// Formats `record` as `formatter` does (`logging`'s default one for None) and appends it.
    fn write(&self, record: &Bound<'_, PyAny>, formatter: &Bound<'_, PyAny>) -> PyResult<()> {
        if self.encoding == "utf-8" {
            let mut line = Vec::with_capacity(256);
            match self.formatters.format(record, formatter, &mut line) {
                Ok(true) => return self.append(record, line),
                Err(error) if !is_ordinary(record.py(), &error) => return Err(error),
                // Python's own way handles unusual records, and raises the errors.
                _ => {}
            }
        }
        let formatter = self.formatters.or_default(formatter)?;
        let text = formatter.call_method1(intern!(record.py(), "format"), (record,))?;
        self.write_formatted(record, &text)
    }

    /// Appends `text`, which `record` has been formatted to.
    fn write_formatted(&self, record: &Bound<'_, PyAny>, text: &Bound<'_, PyAny>) -> PyResult<()> {
        let line = text.add("\n")?;
        if self.encoding == "utf-8"
            && let Ok(line) = line.cast::<PyString>()
            && let Ok(line) = line.to_str()
        {
            return self.append(record, line.as_bytes().to_vec());
        }
        let encode = intern!(record.py(), "encode");
        let bytes = line.call_method1(encode, (&self.encoding, &self.errors))?;
        self.append(record, bytes.cast::<PyBytes>()?.as_bytes().to_vec())
    }
}

impl LineWriter {
    fn append(&self, record: &Bound<'_, PyAny>, line: Vec<u8>) -> PyResult<()> {
        let py = record.py();
        let commits = self.is_committed(record)?;
        let log = &self.log;
        py.detach(|| {
            let lsn = log.append(&line)?;
            // A record that was dropped on a full disk has no position.
            if !commits || lsn == vellum::Lsn::ZERO {
                return Ok(());
            }
            match log.commit(lsn) {
                // The line has gone with the log, wherever that is, and is not to be written again.
                Err(error) if error.kind() == vellum::ErrorKind::Removed => Ok(()),
                answer => answer,
            }
        })
        .or_raise(py)
    }

    fn is_committed(&self, record: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Some(from) = self.commit_from else { return Ok(false) };
        let level = record.getattr(intern!(record.py(), "levelno"))?;
        // A record made by hand may have no level.
        Ok(level.extract::<i64>().is_ok_and(|level| level >= from))
    }
}

/// Whether an exception is one that a handler reports, and not one that ends the program.
fn is_ordinary(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<PyException>(py) && !error.is_instance_of::<PyRecursionError>(py)
}
