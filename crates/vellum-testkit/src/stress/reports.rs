//! The standard output of a process in which several threads print.
//!
//! A recorder that mixes these lines with the requests to the disk relies on two things: a line
//! comes after its commit, and before the next step of the same thread. So nothing is collected,
//! and each line is one write(2).

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result};

use super::numbers::ranges;

/// Standard output, until something fails.
pub(super) struct Reports {
    state: Mutex<State>,
    /// Asked often, so without the lock.
    has_failed: AtomicBool,
}

struct State {
    output: File,
    /// The first failure.
    failure: Option<anyhow::Error>,
}

impl Reports {
    /// Takes standard output.
    pub(super) fn new() -> Result<Reports> {
        // Not through the buffer of `Stdout`.
        let output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        let state = Mutex::new(State { output, failure: None });
        Ok(Reports { state, has_failed: AtomicBool::new(false) })
    }

    /// Says that these records, in ascending order, are durable.
    pub(super) fn acknowledge(&self, numbers: &[u64]) -> Result<()> {
        self.lines("ACK", numbers)
    }

    /// Says that these records, in ascending order, may be gone from now on.
    pub(super) fn announce_drop(&self, numbers: &[u64]) -> Result<()> {
        self.lines("DROP", numbers)
    }

    /// After a failure nothing is said any more.
    fn lines(&self, word: &str, numbers: &[u64]) -> Result<()> {
        let mut state = self.lock();
        if state.failure.is_some() {
            return Ok(());
        }
        for range in ranges(numbers) {
            let line = format!("{word} {range}\n");
            state.output.write_all(line.as_bytes()).context("cannot write to standard output")?;
        }
        Ok(())
    }

    /// Notes that a thread failed; the others are to stop.
    pub(super) fn fail(&self, error: anyhow::Error) {
        self.lock().failure.get_or_insert(error);
        self.has_failed.store(true, Ordering::Relaxed);
    }

    /// Whether some thread failed.
    pub(super) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    /// The first failure, if there is one.
    pub(super) fn end(self) -> Result<()> {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        state.failure.map_or(Ok(()), Err)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
