//! Ending when a signal asks for it: the input is read for a while, the log is closed, and then the
//! signal takes its course, so that the parent sees it.
//!
//! An append that waits, for space or for a process that is stopped, does not go on for being asked
//! to end. So a thread gives it a moment more, and then lets the signal end the process as it would
//! have. Where no thread can be had, a second signal does.

use std::io::{self, PipeReader};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Context;
use rustix::event::{PollFd, PollFlags, poll};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::low_level::pipe;
use vellum_command::outcome::{Result, end_by};
use vellum_command::signals;

/// The signals that ask to end.
pub(crate) const TAKEN: [i32; 3] = [SIGHUP, SIGINT, SIGTERM];
/// For how long an append may go on when the input is no longer read.
const GRACE: Duration = Duration::from_secs(2);

/// Notices the signals that ask to end.
pub(super) struct Ending {
    /// The signal that came last, or 0.
    signal: Arc<AtomicUsize>,
    /// Readable once a signal has come.
    asked: PipeReader,
    /// For how long the input is read from then on.
    timeout: Duration,
}

impl Ending {
    /// Takes the signals from now on, but for those that are ignored.
    pub(super) fn watch(timeout: Duration) -> Result<Ending> {
        let (asked, asking) = io::pipe().context("cannot make a pipe")?;
        let signal = Arc::new(AtomicUsize::new(0));
        let has_come = Arc::new(AtomicBool::new(false));
        for number in signals::not_ignored(&TAKEN) {
            let asking = asking.try_clone().context("cannot make a pipe")?;
            // These actions run in this order. A shell sends SIGHUP after others, and again.
            let taken = match number {
                SIGHUP => Ok(()),
                _ => signals::end_at_once_if(&has_come, number),
            };
            taken
                .and_then(|()| flag::register(number, Arc::clone(&has_come)))
                .and_then(|_| flag::register_usize(number, Arc::clone(&signal), number as usize))
                .and_then(|_| pipe::register(number, asking))
                .context("cannot take signals")?;
        }
        let ending = Ending { signal, asked, timeout };
        ending.give_up_later().context("cannot make a pipe")?;
        Ok(ending)
    }

    /// What to poll for a signal.
    pub(super) fn asked(&self) -> &PipeReader {
        &self.asked
    }

    /// For how long the input is read when a signal has come.
    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// The signal that has come.
    pub(super) fn signal(&self) -> Option<i32> {
        newest(&self.signal)
    }

    /// Ends this process when it has not ended by itself in time.
    fn give_up_later(&self) -> io::Result<()> {
        let (asked, signal) = (self.asked.as_fd().try_clone_to_owned()?, Arc::clone(&self.signal));
        let timeout = self.timeout.saturating_add(GRACE);
        let wait = move || {
            while newest(&signal).is_none() {
                let _ = poll(&mut [PollFd::new(&asked, PollFlags::IN)], None);
            }
            thread::sleep(timeout);
            newest(&signal).map(|signal| end_by(signal))
        };
        // At the limit of processes there is none.
        let _ = thread::Builder::new().name("vellum-signals".into()).spawn(wait);
        Ok(())
    }
}

fn newest(signal: &AtomicUsize) -> Option<i32> {
    Some(signal.load(Ordering::SeqCst) as i32).filter(|signal| *signal != 0)
}
