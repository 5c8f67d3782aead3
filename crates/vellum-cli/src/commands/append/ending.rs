//! Ending when a signal asks for it: what was read is appended, the log is closed, and then the
//! signal takes its course, so that the parent sees it.
//!
//! An append that waits, for space or for a process that is stopped, does not go on for being asked
//! to end. So a thread gives it a moment, and then lets the signal end the process as it would
//! have.

use std::fs;
use std::io::{self, PipeReader, PipeWriter};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Context;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use crate::outcome::Result;

/// For how long an append may go on that was asked to end.
const GRACE: Duration = Duration::from_secs(2);

/// Notices the signals that ask to end.
pub(super) struct Ending {
    signal: Arc<AtomicI32>,
    /// Readable, being closed at the other end, once a signal has come.
    asked: PipeReader,
}

impl Ending {
    /// Takes the signals from now on. Those that are ignored stay so: `nohup` means it.
    pub(super) fn watch() -> Result<Ending> {
        let (asked, asking) = io::pipe().context("cannot make a pipe")?;
        let signal = Arc::new(AtomicI32::new(0));
        let ignored = ignored();
        let taken = [SIGHUP, SIGINT, SIGTERM];
        let taken = taken.into_iter().filter(|number| ignored >> (number - 1) & 1 == 0);
        let signals = Signals::new(taken).context("cannot take signals")?;
        let shared = Arc::clone(&signal);
        let thread = thread::Builder::new().name("vellum-signals".into());
        thread.spawn(|| wait(signals, shared, asking)).context("cannot start a thread")?;
        Ok(Ending { signal, asked })
    }

    /// What to poll for a signal.
    pub(super) fn asked(&self) -> &PipeReader {
        &self.asked
    }

    /// The signal that has come.
    pub(super) fn signal(&self) -> Option<i32> {
        Some(self.signal.load(Ordering::SeqCst)).filter(|signal| *signal != 0)
    }
}

fn wait(mut signals: Signals, shared: Arc<AtomicI32>, asking: PipeWriter) {
    let Some(signal) = signals.forever().next() else { return };
    shared.store(signal, Ordering::SeqCst);
    drop(asking);
    thread::sleep(GRACE);
    let _ = emulate_default_handler(signal);
}

/// The signals that this process ignores, the first in the lowest bit; none where nobody tells.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
