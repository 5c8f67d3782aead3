//! Named cursors: places in a log that survive processes and power cuts.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use vellum::{CursorHold, Lsn};

use crate::error::Raise;
use crate::log::Log;
use crate::options::span;
use crate::reader::{Reader, Source, Waits};
use crate::stat;

/// A named position in a log: its reader has finished everything before it. Made by `Log.cursor`.
///
/// As a context manager it is owned: no other process can change it meanwhile.
#[pyclass(module = "vellum_log", frozen)]
pub(crate) struct Cursor {
    log: Py<Log>,
    inner: Arc<vellum::Cursor>,
}

impl Cursor {
    pub(crate) fn new(log: Py<Log>, inner: vellum::Cursor) -> Cursor {
        Cursor { log, inner: Arc::new(inner) }
    }

    /// Does something that may wait, detached from Python.
    fn run<T: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&vellum::Cursor) -> vellum::Result<T> + Send,
    ) -> PyResult<T> {
        self.log.get().open()?;
        py.detach(|| act(&self.inner)).or_raise(py)
    }

    fn reader(&self, py: Python<'_>, waits: Waits, skip_damage: bool) -> PyResult<Reader> {
        let mut reader = self.run(py, vellum::Cursor::reader)?;
        reader.skip_damage(skip_damage);
        Ok(Reader::new(self.log.clone_ref(py), Source::Plain(reader), waits))
    }
}

#[pymethods]
impl Cursor {
    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        self.inner.name()
    }

    /// Where it is: the position of the first record that its reader has not finished.
    #[getter]
    fn position(&self, py: Python<'_>) -> PyResult<u64> {
        self.run(py, vellum::Cursor::position).map(Lsn::get)
    }

    /// An iterator over the records from the cursor on. Reading does not move the cursor. Raises
    /// `Trimmed` if records were removed in front of the cursor: see `skip_overrun`.
    #[pyo3(signature = (*, skip_damage=false))]
    fn read(&self, py: Python<'_>, skip_damage: bool) -> PyResult<Reader> {
        self.reader(py, Waits::Never, skip_damage)
    }

    /// As `read`, but waits for more at the end of the log: for ever, or until no record has come
    /// for `timeout` seconds. Ctrl-C interrupts it.
    #[pyo3(signature = (timeout=None, *, skip_damage=false))]
    fn follow(
        &self,
        py: Python<'_>,
        timeout: Option<&Bound<'_, PyAny>>,
        skip_damage: bool,
    ) -> PyResult<Reader> {
        let timeout = timeout.map(|timeout| span("timeout", timeout)).transpose()?;
        self.reader(py, Waits::UpTo(timeout, vellum::Lsn::MAX), skip_damage)
    }

    /// Moves the cursor forward to `lsn`, durably: everything before is finished. That is the
    /// `next_lsn` of the last record. The records before are committed first.
    fn commit(&self, py: Python<'_>, lsn: u64) -> PyResult<()> {
        self.run(py, |cursor| cursor.commit(Lsn::new(lsn)))
    }

    /// Moves the cursor to any position of the log; 0 is the oldest record.
    fn set(&self, py: Python<'_>, lsn: u64) -> PyResult<()> {
        self.run(py, |cursor| cursor.set(Lsn::new(lsn)))
    }

    /// Keeps the records from the cursor on from being removed: no more than `max_bytes` of them,
    /// none older than `max_age` seconds. It lasts until `unhold` or `remove`.
    #[pyo3(signature = (*, max_bytes=None, max_age=None))]
    fn hold(
        &self,
        py: Python<'_>,
        max_bytes: Option<u64>,
        max_age: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let mut hold = CursorHold::new();
        hold.max_bytes = max_bytes;
        hold.max_age = max_age.map(|age| span("max_age", age)).transpose()?;
        self.run(py, |cursor| cursor.hold(hold))
    }

    /// Keeps nothing from being removed any more.
    fn unhold(&self, py: Python<'_>) -> PyResult<()> {
        self.run(py, vellum::Cursor::unhold)
    }

    /// Continues behind records that were removed in front of the cursor: moves it to the oldest
    /// record and returns the gap (`vellum_log.Gap`); None if nothing was removed.
    fn skip_overrun<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let gap = self.run(py, vellum::Cursor::skip_overrun)?;
        gap.map(|gap| stat::gap(py, &gap)).transpose()
    }

    /// Makes this process the owner: no other one can change the cursor until `disown`, or until
    /// this process dies. Raises `Busy` while another one owns it.
    fn own(&self, py: Python<'_>) -> PyResult<()> {
        self.run(py, vellum::Cursor::own)
    }

    /// Gives the cursor up, so that another process can own it.
    fn disown(&self) {
        self.inner.disown();
    }

    /// Removes the cursor, and its hold on records, from the log.
    fn remove(&self, py: Python<'_>) -> PyResult<()> {
        self.run(py, vellum::Cursor::remove)
    }

    fn __enter__(this: Py<Self>, py: Python<'_>) -> PyResult<Py<Self>> {
        this.get().own(py)?;
        Ok(this)
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyTuple>) {
        self.disown();
    }

    fn __repr__(&self) -> String {
        format!("<vellum_log.Cursor {:?}>", self.inner.name())
    }
}
