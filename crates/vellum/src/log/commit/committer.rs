//! A thread that commits for those who must not wait: asynchronous programs, and loops over `poll`.
//!
//! The only way to learn of a commit by another process is to sleep until it happens, so somebody
//! has to sleep. This thread exists only where it was asked for.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;

use rustix::event::{EventfdFlags, eventfd};
use rustix::io;

use crate::error::OsResult;
use crate::log::commit::Commit;
use crate::log::state::core::Core;
use crate::log::state::poison;
use crate::shared::commit;
use crate::sys::descriptor::above_standard;
use crate::{Error, ErrorKind, Lsn, Result};

/// Commits in a thread of its own, and says when it is done by file descriptors that can be
/// polled.
///
/// Made by [`Log::committer`](crate::Log::committer). Dropping it waits until what was submitted is
/// done. In a forked child there is no such thread: make another.
#[derive(Debug)]
pub struct Committer {
    queue: Arc<Queue>,
    thread: Option<JoinHandle<()>>,
    pid: u32,
}

/// A commit that is on its way.
///
/// Its file descriptor becomes readable, and stays so, when the record is durable or never will
/// be, or this process could not commit it; then [`outcome`](Completion::outcome) tells which.
/// Nothing needs to be read from it.
#[derive(Debug)]
pub struct Completion {
    core: Arc<Core>,
    request: Arc<Request>,
}

#[derive(Debug)]
struct Request {
    end: Lsn,
    event: OwnedFd,
    /// Why this process could not commit.
    failure: OnceLock<Error>,
}

#[derive(Debug)]
struct Queue {
    core: Arc<Core>,
    waiting: Mutex<Waiting>,
    news: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    requests: Vec<Arc<Request>>,
    is_closed: bool,
}

impl Committer {
    pub(crate) fn new(core: Arc<Core>) -> Result<Committer> {
        core.attachment()?;
        let queue = Queue { core, waiting: Mutex::default(), news: Condvar::new() };
        let queue = Arc::new(queue);
        let thread = std::thread::Builder::new().name("vellum-commit".into()).spawn({
            let queue = Arc::clone(&queue);
            move || queue.serve()
        });
        let thread = thread.map_err(|error| {
            let errno = io::Errno::from_io_error(&error).unwrap_or(io::Errno::AGAIN);
            Error::os(errno, "start a thread for commits of", &queue.core.dir)
        })?;
        Ok(Committer { queue, thread: Some(thread), pid: std::process::id() })
    }

    /// Asks for the record at `lsn` to be made durable; returns at once.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OutOfRange`] for a position beyond the end, [`ErrorKind::Unsupported`] in a
    /// child forked after the committer was made, and [`ErrorKind::Io`] where the process has no
    /// file descriptor left.
    ///
    /// # Cost
    ///
    /// An event descriptor, and waking the thread if it sleeps.
    pub fn submit(&self, lsn: Lsn) -> Result<Completion> {
        if self.pid != std::process::id() {
            let message = "the committer's thread stayed in the process that was forked; make \
                           another";
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        let core = Arc::clone(&self.queue.core);
        let end = Commit::of(&core).end_of_commit(lsn)?;
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let event = above_standard(|| eventfd(0, flags)).or_os("make an event for", &core.dir)?;
        let request = Arc::new(Request { end, event, failure: OnceLock::new() });
        self.queue.lock().requests.push(Arc::clone(&request));
        self.queue.news.notify_one();
        Ok(Completion { core, request })
    }
}

impl Drop for Committer {
    fn drop(&mut self) {
        if self.pid != std::process::id() {
            // The thread is the parent's; joining it would wait for ever.
            std::mem::forget(self.thread.take());
            return;
        }
        self.queue.lock().is_closed = true;
        self.queue.news.notify_one();
        if let Some(thread) = self.thread.take() {
            // It does not panic; if it did, the requests are lost and their owners told nothing.
            let _ = thread.join();
        }
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self) {
        while let Some(requests) = self.next() {
            // In order: the first to be durable need not wait for the last.
            let mut requests = requests;
            requests.sort_unstable_by_key(|request| request.end);
            for request in requests {
                if let Err(error) = Commit::of(&self.core).commit_until(request.end, None) {
                    let _ = request.failure.set(error);
                }
                // The counter is at 0, so there is room for 1.
                let _ = io::write(&request.event, &1u64.to_ne_bytes());
            }
        }
    }

    /// All requests there are, waiting for one; `None` when there will be no more.
    fn next(&self) -> Option<Vec<Arc<Request>>> {
        let mut waiting = self.lock();
        loop {
            if !waiting.requests.is_empty() {
                return Some(std::mem::take(&mut waiting.requests));
            }
            if waiting.is_closed {
                return None;
            }
            waiting = self.news.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Completion {
    /// What came of it; `None` as long as it is on its way.
    ///
    /// # Errors
    ///
    /// As for [`Log::commit`](crate::Log::commit).
    pub fn outcome(&self) -> Option<Result<()>> {
        let words = &self.core.words().commits;
        if commit::durable(words) >= self.request.end {
            Some(Ok(()))
        } else if let Some(error) = self.request.failure.get() {
            Some(Err(error.clone()))
        } else if commit::is_poisoned(words) {
            Some(Err(poison::error(&self.core)))
        } else {
            None
        }
    }
}

impl AsFd for Completion {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.request.event.as_fd()
    }
}

impl AsRawFd for Completion {
    fn as_raw_fd(&self) -> RawFd {
        self.request.event.as_raw_fd()
    }
}
