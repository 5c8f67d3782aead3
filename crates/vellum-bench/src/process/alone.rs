//! One process that does one thing: the signal that kills it ends nothing else.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::{DONE, FAILED, Slot, UNSUPPORTED, fork_child, report};
use crate::error::{Context, Error, Result};
use crate::interrupt;
use crate::shared::Shared;

/// Has a forked process do `work`, and waits for it.
///
/// # Errors
///
/// What `work` returned, of the same kind if the system can't do it; that it panicked; the signal
/// that killed it; that it had not finished after `limit`, or the run is to end: then it is killed.
fn alone(limit: Duration, work: impl FnOnce() -> Result<()>) -> Result<()> {
    let slots = Shared::<Slot>::new(1)?;
    let slot = &slots[0];
    let mut child = fork_child(|| report(slot, work)).context(|| "start a process")?;
    if interrupt::sleep(&[child.fd.as_fd()], Instant::now() + limit)?.is_none() {
        let seconds = limit.as_secs();
        return Err(Error::failed(format!("had not finished after {seconds} s and was killed")));
    }
    let status = child.reap()?;
    if let Some(signal) = status.terminating_signal() {
        return Err(Error::failed(format!("killed by {}", signal_name(signal))));
    }
    match slot.outcome.load(Ordering::Relaxed) {
        DONE => Ok(()),
        FAILED => Err(Error::failed(slot.text())),
        UNSUPPORTED => Err(Error::unsupported(slot.text())),
        _ => Err(Error::failed(format!("exited without a report, {:?}", status.exit_status()))),
    }
}

/// The same for work that comes to `count` numbers at most; a number that is not told is 0.
///
/// # Errors
///
/// As for [`alone`].
pub(crate) fn figures(
    limit: Duration,
    count: usize,
    work: impl FnOnce() -> Result<Vec<f64>>,
) -> Result<Vec<f64>> {
    // The child writes, and the parent reads after it has ended, which orders everything.
    let words = Shared::<AtomicU64>::new(count)?;
    alone(limit, || {
        for (word, figure) in words.iter().zip(work()?) {
            word.store(figure.to_bits(), Ordering::Relaxed);
        }
        Ok(())
    })?;
    Ok(words.iter().map(|word| f64::from_bits(word.load(Ordering::Relaxed))).collect())
}

/// The signals that end a process because of its own act; others by their number.
fn signal_name(signal: i32) -> String {
    let name = match signal {
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGILL => "SIGILL",
        libc::SIGKILL => "SIGKILL",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGTERM => "SIGTERM",
        libc::SIGXFSZ => "SIGXFSZ",
        _ => return format!("signal {signal}"),
    };
    name.into()
}

#[cfg(test)]
mod tests {
    use rustix::process::{Signal, getpid, kill_process};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(60);

    #[test]
    fn how_it_ended_is_told() {
        assert!(alone(LIMIT, || Ok(())).is_ok());
        let failed = alone(LIMIT, || Err(Error::failed("no bread"))).unwrap_err();
        assert_eq!(failed.to_string(), "no bread");
        let panicked = alone(LIMIT, || panic!("no butter")).unwrap_err();
        assert_eq!(panicked.to_string(), "panicked: no butter");
        let killed = alone(LIMIT, || {
            let _ = kill_process(getpid(), Signal::KILL);
            Ok(())
        });
        assert_eq!(killed.unwrap_err().to_string(), "killed by SIGKILL");
    }

    #[test]
    fn numbers_and_what_the_system_can_not_do_arrive() {
        assert_eq!(figures(LIMIT, 3, || Ok(vec![1.5, -0.5])).unwrap(), [1.5, -0.5, 0.0]);
        let error = figures(LIMIT, 1, || Err(Error::unsupported("no such call"))).unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::Unsupported);
        assert_eq!(error.to_string(), "no such call");
    }

    #[test]
    fn one_that_does_not_end_is_killed_at_the_limit() {
        let error = alone(Duration::from_millis(1), || {
            loop {
                std::thread::park();
            }
        });
        assert!(error.unwrap_err().to_string().contains("had not finished"));
    }
}
