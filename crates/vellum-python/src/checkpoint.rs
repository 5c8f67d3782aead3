//! `vellum_log.CheckpointEvent`.

use std::os::fd::AsRawFd;

use pyo3::prelude::*;

use crate::error::Raise;

/// A file descriptor that becomes readable when a commit of this process finds that a checkpoint is
/// due. Made by `Log.checkpoint().event()`; for `select`, or `add_reader` of an event loop.
///
/// A commit of another process, a forked child for example, has no effect on it: the next commit of
/// this one has. It keeps the log open until it is collected.
#[pyclass(module = "vellum_log", frozen)]
pub(crate) struct CheckpointEvent {
    event: vellum::CheckpointEvent,
}

impl CheckpointEvent {
    pub(crate) fn new(event: vellum::CheckpointEvent) -> CheckpointEvent {
        CheckpointEvent { event }
    }
}

#[pymethods]
impl CheckpointEvent {
    /// The descriptor; neither to be closed nor read from.
    fn fileno(&self) -> i32 {
        self.event.as_raw_fd()
    }

    /// Makes the descriptor unreadable; returns whether a checkpoint is due now. As long as one is,
    /// the next commit of this process makes it readable again.
    fn take(&self, py: Python<'_>) -> PyResult<bool> {
        self.event.take().or_raise(py)
    }
}
