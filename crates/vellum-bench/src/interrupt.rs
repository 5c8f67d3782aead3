//! Ending runs early, with the results until then.
//!
//! Nothing is done in a signal handler. The code that takes signals hands in a descriptor that is
//! readable from then on, and each wait for measured processes ends with it. Those processes have
//! inherited the handlers of this one, so they are killed by it, and not by the keyboard.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::error::{Context, Error, Result};

/// For all runs of this process, because signals are for all of it.
static ASKED: OnceLock<OwnedFd> = OnceLock::new();

/// Has all runs of this process end early once `asked` is readable: its processes are killed, the
/// unfinished round is not counted, and the report has the rounds before that. The first call
/// counts.
pub fn end_runs_when_readable(asked: OwnedFd) {
    let _ = ASKED.set(asked);
}

/// Is a run to end now?
pub(crate) fn is_asked() -> bool {
    sleep(&[], Instant::now()).is_err()
}

/// Sleeps until one of `fds` is readable, and says which are; `None` when `deadline` has passed.
///
/// # Errors
///
/// The run is to end.
pub(crate) fn sleep(fds: &[BorrowedFd<'_>], deadline: Instant) -> Result<Option<Vec<bool>>> {
    let asked = ASKED.get().map(AsFd::as_fd);
    let all = asked.iter().chain(fds);
    let mut all: Vec<_> = all.map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).unwrap_or_default();
        match poll(&mut all, Some(&timeout)) {
            Ok(0) => return Ok(None),
            Ok(_) => break,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error).context(|| "wait for processes"),
        }
    }
    let is_set: Vec<bool> = all.iter().map(|fd| !fd.revents().is_empty()).collect();
    if asked.is_some() && is_set[0] {
        return Err(Error::interrupted());
    }
    Ok(Some(is_set[is_set.len() - fds.len()..].to_vec()))
}
