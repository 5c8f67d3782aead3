//! Ending when a signal asks for it: the input is read for a while, the log is closed, and then the
//! signal takes its course, so that the parent sees it.
//!
//! An append that waits, for space or for a process that is stopped, does not continue for being
//! asked to end. So a thread gives it a moment more, and then lets the signal end the process as it
//! would have. Where no thread can be had, a second signal does.

use std::io::PipeReader;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::Context;
use rustix::event::{PollFd, PollFlags, poll};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use vellum_command::outcome::{Result, end_by};
use vellum_command::signals::Asked;

/// The signals that ask to end.
pub(crate) const TAKEN: [i32; 3] = [SIGHUP, SIGINT, SIGTERM];
/// For how long an append may last when the input is no longer read.
const GRACE: Duration = Duration::from_secs(2);

/// Notices the signals that ask to end.
pub(super) struct Ending {
    asked: Arc<Asked>,
    /// For how long the input is read from then on.
    timeout: Duration,
}

impl Ending {
    /// Takes the signals from now on, but for those that are ignored.
    pub(super) fn watch(timeout: Duration) -> Result<Ending> {
        let asked = Arc::new(Asked::take(&TAKEN).context("cannot take signals")?);
        let ending = Ending { asked, timeout };
        ending.give_up_later();
        Ok(ending)
    }

    /// The end of a pipe to poll for a signal.
    pub(super) fn asked(&self) -> &PipeReader {
        self.asked.news()
    }

    /// For how long the input is read when a signal has come.
    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// The signal that has come.
    pub(super) fn signal(&self) -> Option<i32> {
        self.asked.signal()
    }

    /// Ends this process when it has not ended by itself in time.
    fn give_up_later(&self) {
        let (asked, timeout) = (Arc::clone(&self.asked), self.timeout.saturating_add(GRACE));
        let wait = move || {
            while asked.signal().is_none() {
                let _ = poll(&mut [PollFd::new(asked.news(), PollFlags::IN)], None);
            }
            thread::sleep(timeout);
            asked.signal().map(|signal| end_by(signal))
        };
        // At the limit of processes there is none.
        let _ = thread::Builder::new().name("vellum-signals".into()).spawn(wait);
    }
}
