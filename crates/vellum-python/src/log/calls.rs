//! The parts of the methods of `Log`.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use vellum::{ErrorKind, Lsn};

use super::Log;
use crate::bytes::Payload;
use crate::error::Raise;
use crate::options::span;
use crate::position::Start;
use crate::reader::SLICE;
use crate::unfinished::Unfinished;

impl Log {
    pub(super) fn new(log: vellum::Log, path: PathBuf, for_a_copy: Py<PyDict>) -> Log {
        let (open, unfinished) = (Mutex::new(Some(log)), Unfinished::default());
        Log { open, path, for_a_copy, unfinished }
    }

    /// The log, unless it is closed.
    pub(crate) fn open(&self) -> PyResult<vellum::Log> {
        self.state().clone().ok_or_else(|| {
            PyValueError::new_err(format!("the log {} is closed", self.path.display()))
        })
    }

    pub(super) fn reader(
        &self,
        py: Python<'_>,
        start: Start,
        after: bool,
        skip_damage: bool,
        durable: bool,
        end: Lsn,
    ) -> PyResult<vellum::Reader> {
        let reader = self.run(py, |log| start.reader(log, after))?;
        let mut reader = if durable { reader.durable() } else { reader };
        reader.skip_damage(skip_damage);
        reader.stop_at(end);
        Ok(reader)
    }

    pub(super) fn state(&self) -> MutexGuard<'_, Option<vellum::Log>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something that may wait, detached from Python.
    pub(super) fn run<T: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&vellum::Log) -> vellum::Result<T> + Send,
    ) -> PyResult<T> {
        let log = self.open()?;
        py.detach(|| act(&log)).or_raise(py)
    }

    /// Waits by `wait`, which gives up after a while, for ever or for `timeout`.
    pub(super) fn wait<T: Send>(
        &self,
        py: Python<'_>,
        timeout: Option<&Bound<'_, PyAny>>,
        wait: impl Fn(&vellum::Log, Duration) -> vellum::Result<T> + Send + Sync,
    ) -> PyResult<T> {
        let timeout = timeout.map(|timeout| span("timeout", timeout)).transpose()?;
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            let left = deadline.map(|end| end.saturating_duration_since(Instant::now()));
            let slice = left.map_or(SLICE, |left| left.min(SLICE));
            let is_last = left.is_some_and(|left| left <= slice);
            let log = self.open()?;
            match py.detach(|| wait(&log, slice)) {
                Err(error) if error.kind() == ErrorKind::TimedOut && !is_last => {}
                answer => return answer.or_raise(py),
            }
            py.check_signals()?;
        }
    }

    /// Appends several records, all or none, by `append`.
    pub(super) fn append_all<T: Send>(
        &self,
        py: Python<'_>,
        records: &Bound<'_, PyAny>,
        append: impl FnOnce(vellum::Batch<'_>) -> vellum::Result<T> + Send,
    ) -> PyResult<T> {
        let payloads = records
            .try_iter()?
            .map(|record| record?.extract())
            .collect::<PyResult<Vec<Payload<'_>>>>()?;
        let records: Vec<&[u8]> = payloads.iter().map(Payload::as_slice).collect();
        self.run(py, |log| {
            let mut batch = log.batch();
            records.iter().try_for_each(|record| batch.push(record))?;
            append(batch)
        })
    }
}
