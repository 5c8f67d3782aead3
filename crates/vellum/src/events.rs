//! Where the events of a program go: a log, and a count of those that it refused.

use std::io::{IoSlice, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::{Layout, Log, Result};

/// A log that events are appended to, one record each.
#[derive(Debug)]
pub(crate) struct Events {
    log: Arc<Log>,
    lost: AtomicU64,
    /// Whether the last event was lost, so that a full disk is told of once and not each time.
    is_losing: AtomicBool,
}

impl Events {
    pub(crate) fn new(log: Arc<Log>) -> Events {
        Events { log, lost: AtomicU64::new(0), is_losing: AtomicBool::new(false) }
    }

    /// Events that could not be appended.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Appends an event: in a text log with a newline at its end, in a framed one without.
    pub(crate) fn append(&self, event: &[u8]) -> Result<()> {
        let bare = event.strip_suffix(b"\n");
        let answer = match (self.log.layout(), bare) {
            (Layout::Text, None) => {
                self.log.append_vectored(&[IoSlice::new(event), IoSlice::new(b"\n")])
            }
            (Layout::Text, Some(_)) => self.log.append(event),
            (Layout::Framed, bare) => self.log.append(bare.unwrap_or(event)),
        };
        self.note(answer.map(|_| ()))
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
