//! Where the events of a program go: a log, the one that takes its place when it is removed or
//! moved, and a count of those that were refused.

use std::io::{IoSlice, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{RwLock, TryLockError};
use std::time::Duration;

use crate::{Error, ErrorKind, Layout, Log, Result};

/// How often to look whether another thread has opened the log again. A forked child may look for
/// one that it does not have.
const LOOKS: u32 = 2000;
const PAUSE: Duration = Duration::from_millis(1);

/// A log that events are appended to, one record each.
#[derive(Debug)]
pub(crate) struct Events {
    log: Log,
    /// Whether there is a successor: so nobody takes its lock before.
    has_moved: AtomicBool,
    /// The log that is at the path now.
    successor: RwLock<Option<Log>>,
    lost: AtomicU64,
    /// Whether the last event was lost, so that a full disk is told of once and not each time.
    is_losing: AtomicBool,
}

impl Events {
    pub(crate) fn new(log: Log) -> Events {
        Events {
            log,
            has_moved: AtomicBool::new(false),
            successor: RwLock::new(None),
            lost: AtomicU64::new(0),
            is_losing: AtomicBool::new(false),
        }
    }

    /// Events that could not be appended.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Appends an event: in a text log with a newline at its end, in a framed one without.
    pub(crate) fn append(&self, event: &[u8]) -> Result<()> {
        let answer = match self.has_moved.load(Ordering::Acquire) {
            false => append(&self.log, event),
            true => self.current().and_then(|log| append(&log, event)),
        };
        let answer = match answer {
            Err(error) if error.kind() == ErrorKind::Removed => self.append_to_next(event),
            answer => answer,
        };
        self.note(answer)
    }

    /// Appends an event to the log that is at the path by now.
    #[cold]
    fn append_to_next(&self, event: &[u8]) -> Result<()> {
        let next = self.follow()?;
        append(&next, event)
    }

    fn current(&self) -> Result<Log> {
        let successor = patiently(|| self.successor.try_read())?;
        Ok(successor.as_ref().unwrap_or(&self.log).clone())
    }

    /// Opens the log at the path, unless another thread has done that meanwhile.
    fn follow(&self) -> Result<Log> {
        let mut successor = patiently(|| self.successor.try_write())?;
        let log = successor.as_ref().unwrap_or(&self.log);
        if log.is_in_place() {
            return Ok(log.clone());
        }
        let next = log.reopen()?;
        *successor = Some(next.clone());
        self.has_moved.store(true, Ordering::Release);
        Ok(next)
    }

    /// Counts an event that was lost, and tells of the first one in a row.
    fn note(&self, answer: Result<()>) -> Result<()> {
        match &answer {
            Ok(()) if self.is_losing.load(Ordering::Relaxed) => {
                self.is_losing.store(false, Ordering::Relaxed);
            }
            Ok(()) => {}
            Err(error) => {
                self.lost.fetch_add(1, Ordering::Relaxed);
                if !self.is_losing.swap(true, Ordering::Relaxed) {
                    let line =
                        format!("vellum: lost an event, and counts those that follow: {error}\n");
                    // Standard error may be closed, and there is nobody else to tell.
                    let _ = std::io::stderr().write_all(line.as_bytes());
                }
            }
        }
        answer
    }
}

fn append(log: &Log, event: &[u8]) -> Result<()> {
    let bare = event.strip_suffix(b"\n");
    let answer = match (log.layout(), bare) {
        (Layout::Text, None) => log.append_vectored(&[IoSlice::new(event), IoSlice::new(b"\n")]),
        (Layout::Text, Some(_)) => log.append(event),
        (_, bare) => log.append(bare.unwrap_or(event)),
    };
    answer.map(|_| ())
}

/// Takes a lock that a thread may hold which a forked child does not have.
fn patiently<T>(mut lock: impl FnMut() -> std::result::Result<T, TryLockError<T>>) -> Result<T> {
    for _ in 0..LOOKS {
        match lock() {
            Ok(held) => return Ok(held),
            Err(TryLockError::Poisoned(held)) => return Ok(held.into_inner()),
            Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
        }
    }
    Err(Error::new(ErrorKind::TimedOut, "another thread has not opened the log again in time"))
}
