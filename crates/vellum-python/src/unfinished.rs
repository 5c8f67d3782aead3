//! Lines that were begun by `Log.write`: `print` hands in a line piece by piece.

use std::collections::HashMap;
use std::io::IoSlice;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;

use pyo3::prelude::*;

use crate::error::Raise;

/// The part that each thread has written of a line without an end. See [locks](crate#locks).
#[derive(Default)]
pub(crate) struct Unfinished(Mutex<Lines>);

#[derive(Default)]
struct Lines {
    pid: u32,
    of_threads: HashMap<ThreadId, Vec<u8>>,
}

impl Unfinished {
    fn lines(&self) -> MutexGuard<'_, Lines> {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // The parent of a forked child will end the lines that the child finds here.
        let pid = std::process::id();
        if lines.pid != pid {
            *lines = Lines { pid, of_threads: HashMap::new() };
        }
        lines
    }

    /// Appends the lines in `bytes` that have their end, behind the line that the calling thread
    /// has begun, and keeps the rest.
    pub(crate) fn write(&self, py: Python<'_>, log: &vellum::Log, bytes: &[u8]) -> PyResult<()> {
        let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let (ended, rest) = bytes.split_at(end);
        let mut begun = self.take();
        if !ended.is_empty() {
            let parts = [IoSlice::new(&begun), IoSlice::new(ended)];
            if let Err(error) = py.detach(|| log.append_vectored(&parts)) {
                self.keep(begun);
                return Err(error).or_raise(py);
            }
            begun.clear();
        }
        begun.extend_from_slice(rest);
        self.keep(begun);
        Ok(())
    }

    /// Takes what the calling thread has begun.
    fn take(&self) -> Vec<u8> {
        self.lines().of_threads.remove(&std::thread::current().id()).unwrap_or_default()
    }

    /// Keeps what the calling thread has begun.
    fn keep(&self, line: Vec<u8>) {
        if !line.is_empty() {
            self.lines().of_threads.insert(std::thread::current().id(), line);
        }
    }

    /// Takes what all threads have begun, each with an end of line.
    pub(crate) fn take_all(&self) -> Vec<u8> {
        let begun = std::mem::take(&mut self.lines().of_threads);
        begun.into_values().flat_map(|line| [line, vec![b'\n']].concat()).collect()
    }
}
