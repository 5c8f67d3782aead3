//! When a checkpoint is due, and the event for it.
//!
//! No thread waits for it: the commit that finds the limit reached sets it. That costs a commit one
//! load where no event was made, and nothing is shared with other processes.

use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io;

use crate::shared::commit;
use crate::shared::primitive::Ordering;
use crate::shared::words::Words;
use crate::sys::descriptor::above_standard;

/// The limit of one process, and the event of its log.
#[derive(Debug, Default)]
pub(crate) struct Trigger {
    /// Bytes after which a checkpoint is due.
    after: Option<u64>,
    event: OnceLock<Arc<Event>>,
}

/// An event descriptor that is not readable yet.
pub(crate) fn descriptor() -> io::Result<OwnedFd> {
    above_standard(|| eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK))
}

/// Makes an event descriptor readable: its counter is at 0, or a forked child has reset it, so
/// there is room for 1.
pub(crate) fn ring(event: &OwnedFd) {
    let _ = io::write(event, &1u64.to_ne_bytes());
}

/// An event descriptor, readable while it is set.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) fd: Arc<OwnedFd>,
    /// The process that made it. A forked child shares the descriptor, and must not touch it.
    pub(crate) pid: u32,
    is_set: std::sync::atomic::AtomicBool,
}

impl Trigger {
    /// Due after so many bytes; 0 is never.
    pub(crate) fn new(after: Option<u64>) -> Trigger {
        Trigger { after: after.filter(|bytes| *bytes != 0), event: OnceLock::new() }
    }

    /// Whether as many bytes are durable behind the checkpoint as the limit says.
    pub(crate) fn is_due(&self, words: &Words) -> bool {
        self.after.is_some_and(|after| bytes_to_recover(words) >= after)
    }

    /// The event of this log in this process; made by the first that asks for it.
    pub(crate) fn event(&self) -> io::Result<&Arc<Event>> {
        if self.event.get().is_none() {
            // Another thread may have been faster: then this one is closed again.
            let _ = self.event.set(Arc::new(Event::new()?));
        }
        self.event.get().ok_or(io::Errno::NOMEM)
    }

    /// Sets the event where a checkpoint is due and an event was made.
    pub(crate) fn notify_if_due(&self, words: &Words) {
        if let Some(event) = self.event.get()
            && self.is_due(words)
        {
            event.set();
        }
    }
}

impl Event {
    pub(crate) fn new() -> io::Result<Event> {
        Ok(Event { fd: descriptor()?.into(), pid: std::process::id(), is_set: false.into() })
    }

    pub(crate) fn set(&self) {
        if !self.is_set.swap(true, Ordering::AcqRel) && self.pid == std::process::id() {
            ring(&self.fd);
        }
    }

    /// Resets it. Its caller checks the log afterwards: a commit that sets the event at this moment
    /// may not be seen otherwise.
    pub(crate) fn reset(&self) {
        let _ = io::read(&self.fd, &mut [0; 8]);
        // Last: a commit that finds it reset writes to the descriptor again, and the caller sees
        // the durable end of a commit that found it set.
        self.is_set.swap(false, Ordering::AcqRel);
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if self.pid != std::process::id() {
            // A daemon closes all descriptors, and others get their numbers: this one may be one of
            // them by now. It stays open until the child ends.
            std::mem::forget(Arc::clone(&self.fd));
        }
    }
}

/// Bytes of log that a user of the log has to read to recover, all of them durable.
fn bytes_to_recover(words: &Words) -> u64 {
    let from = words.commits.checkpoint().max(words.begin());
    commit::durable(&words.commits).get().saturating_sub(from.get())
}
