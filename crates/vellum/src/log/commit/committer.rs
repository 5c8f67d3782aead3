//! A thread that commits for callers that must not wait: asynchronous programs, and loops over
//! `poll`.
//!
//! The only way to learn of a commit by another process is to sleep until it happens, so a thread
//! has to sleep. This thread exists only where the program wants it.

use std::future::Future;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread::{self, JoinHandle};

use rustix::io;

use crate::error::OsResult;
use crate::log::commit::Commit;
use crate::log::commit::trigger::{self, Event};
use crate::log::state::core::Core;
use crate::log::state::poison;
use crate::shared::commit;
use crate::{Error, ErrorKind, Lsn, Result};

/// Commits in a thread of its own: for asynchronous programs, which await it, and for event loops,
/// which poll a file descriptor.
///
/// Made by [`Log::committer`](crate::Log::committer). Dropping it waits until what was submitted is
/// done. In a forked child there is no such thread: make another.
///
/// ```
/// # async fn orders(log: vellum::Log) -> vellum::Result<()> {
/// let committer = log.committer()?;
/// let lsn = committer.append_durable(b"an order").await?;
///
/// // Or apart: many records, one wait.
/// log.append(b"another")?;
/// let newest = log.append(b"and one more")?;
/// committer.submit(newest)?.await
/// # }
/// ```
#[derive(Debug)]
pub struct Committer {
    queue: Arc<Queue>,
    thread: Option<JoinHandle<()>>,
    pid: u32,
}

/// A commit that is on its way: a future, for any runtime or none.
///
/// It is ready when the record is durable or never will be, or this process could not commit it.
/// Dropping it takes nothing back: the record is committed all the same. A program without futures
/// polls its [`descriptor`](Completion::descriptor), and then looks at the
/// [`outcome`](Completion::outcome).
#[derive(Debug)]
#[must_use = "a commit may fail"]
pub struct Completion {
    core: Arc<Core>,
    request: Arc<Request>,
}

#[derive(Debug)]
struct Request {
    end: Lsn,
    waiter: Mutex<Waiter>,
    /// Made when a caller wants it.
    event: OnceLock<OwnedFd>,
    /// Why this process could not commit.
    failure: OnceLock<Error>,
}

/// The future that waits for a request, and whether the request is done.
#[derive(Debug, Default)]
struct Waiter {
    is_done: bool,
    waker: Option<Waker>,
}

#[derive(Debug)]
struct Queue {
    core: Arc<Core>,
    waiting: Mutex<Waiting>,
    /// For a program that waits for all of them by one descriptor; made when a caller wants it.
    event: OnceLock<Event>,
    /// The newest that [`Committer::take`] has not told.
    failure: Mutex<Option<Error>>,
}

#[derive(Debug, Default)]
struct Waiting {
    requests: Vec<Arc<Request>>,
    is_closed: bool,
}

impl Committer {
    pub(crate) fn new(core: Arc<Core>) -> Result<Committer> {
        core.attachment()?;
        let queue = Arc::new(Queue {
            core,
            waiting: Mutex::default(),
            event: OnceLock::new(),
            failure: Mutex::default(),
        });
        let thread = thread::Builder::new().name("vellum-commit".into()).spawn({
            let queue = Arc::clone(&queue);
            move || queue.serve()
        });
        let thread = thread.map_err(|error| {
            let errno = io::Errno::from_io_error(&error).unwrap_or(io::Errno::AGAIN);
            Error::os(errno, "start a thread for commits of", &queue.core.files.dir)
        })?;
        queue.core.attachment()?.helpers.add(thread.thread());
        Ok(Committer { queue, thread: Some(thread), pid: std::process::id() })
    }

    /// Asks for the record at `lsn` to be made durable; returns at once.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OutOfRange`] for a position beyond the end, and [`ErrorKind::Unsupported`] in a
    /// child forked after the committer was made.
    ///
    /// # Cost
    ///
    /// A hundred bytes of memory, and waking the thread if it sleeps.
    pub fn submit(&self, lsn: Lsn) -> Result<Completion> {
        self.require_own()?;
        let core = Arc::clone(&self.queue.core);
        let end = Commit::of(&core).end_of_commit(lsn)?;
        let (waiter, event, failure) = Default::default();
        let request = Arc::new(Request { end, waiter, event, failure });
        self.queue.lock().requests.push(Arc::clone(&request));
        self.thread.as_ref().into_iter().for_each(|thread| thread.thread().unpark());
        Ok(Completion { core, request })
    }

    /// One file descriptor for all that is submitted: it becomes readable when the durable end may
    /// have moved, or a commit failed, and stays so until [`take`](Committer::take) is called. For
    /// event loops that would have to add and close a descriptor for each
    /// [`Completion`]. The same one each time; readable at first.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`] where the process has no file descriptor left, and
    /// [`ErrorKind::Unsupported`] in a child forked after the committer was made.
    ///
    /// # Cost
    ///
    /// A descriptor, and a system call for each commit that finds it not readable.
    pub fn descriptor(&self) -> Result<BorrowedFd<'_>> {
        self.require_own()?;
        let event = match self.queue.event.get() {
            Some(event) => event,
            None => {
                let event = Event::new().or_os("make an event for", &self.queue.core.files.dir)?;
                // Earlier commits have set no event.
                event.set();
                // Another thread may have been faster: then this one is closed again.
                self.queue.event.get_or_init(|| event)
            }
        };
        Ok(event.fd.as_fd())
    }

    /// Makes the [`descriptor`](Committer::descriptor) unreadable, and returns the end of the
    /// durable records: each record before it is durable.
    ///
    /// # Errors
    ///
    /// That of a commit of this committer that failed since the last call, as for
    /// [`Log::commit`](crate::Log::commit). The log may continue after it: call it again, and
    /// submit again the records that are not durable.
    ///
    /// # Cost
    ///
    /// A system call where there is a descriptor.
    pub fn take(&self) -> Result<Lsn> {
        self.require_own()?;
        self.queue.event.get().into_iter().for_each(Event::reset);
        // Afterwards, so that a failure that comes meanwhile makes the descriptor readable again.
        match self.queue.failure().take() {
            Some(error) => Err(error),
            None => Ok(commit::durable(&self.queue.core.words().commits)),
        }
    }

    fn require_own(&self) -> Result<()> {
        if self.pid == std::process::id() {
            return Ok(());
        }
        let message = "the committer's thread stayed in the process that was forked; make another";
        Err(Error::new(ErrorKind::Unsupported, message))
    }

    /// The log that it commits.
    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.queue.core
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
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It does not panic; if it did, the requests are lost and their owners told nothing.
            let _ = thread.join();
        }
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failure(&self) -> MutexGuard<'_, Option<Error>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self) {
        while let Some(requests) = self.next() {
            // In order: the first to be durable need not wait for the last.
            let mut requests = requests;
            requests.sort_unstable_by_key(|request| request.end);
            let words = &self.core.words().commits;
            for request in requests {
                // A commit counts itself where it has to wait; here this thread did that for it.
                if commit::durable(words) >= request.end {
                    words.counts.count_commit();
                }
                if let Err(error) = Commit::of(&self.core).commit_until(request.end, None) {
                    *self.failure() = Some(error.clone());
                    let _ = request.failure.set(error);
                }
                request.finish();
                self.event.get().into_iter().for_each(Event::set);
            }
        }
        if let Ok(attachment) = self.core.attachment() {
            attachment.helpers.leave();
        }
    }

    /// Does what appends have asked for.
    fn help(&self) {
        match Commit::of(&self.core).help() {
            Ok(None) => return,
            Ok(Some(_)) => {}
            Err(error) => *self.failure() = Some(error),
        }
        self.event.get().into_iter().for_each(Event::set);
    }

    /// All requests there are, waiting for one; `None` when there will be no more.
    fn next(&self) -> Option<Vec<Arc<Request>>> {
        loop {
            self.help();
            // Behind that: a wakeup from now on keeps this thread from sleeping.
            let mut waiting = self.lock();
            if !waiting.requests.is_empty() {
                return Some(std::mem::take(&mut waiting.requests));
            }
            if waiting.is_closed {
                return None;
            }
            drop(waiting);
            thread::park();
        }
    }
}

impl Request {
    fn waiter(&self) -> MutexGuard<'_, Waiter> {
        self.waiter.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn finish(&self) {
        let mut waiter = self.waiter();
        waiter.is_done = true;
        let waker = waiter.waker.take();
        self.event.get().into_iter().for_each(trigger::ring);
        drop(waiter);
        // It may run code of the program.
        waker.into_iter().for_each(Waker::wake);
    }
}

impl Completion {
    /// Its result; `None` as long as it is on its way.
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

    /// A file descriptor that becomes readable when there is an outcome, and stays so: for `poll`
    /// and `epoll`. Nothing needs to be read from it. The same one each time, closed with this.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`] where the process has no file descriptor left.
    ///
    /// # Cost
    ///
    /// A descriptor, the first time. A future needs none.
    pub fn descriptor(&self) -> Result<BorrowedFd<'_>> {
        // Under the lock, so that the thread rings either what is here or nothing.
        let waiter = self.request.waiter();
        let event = match self.request.event.get() {
            Some(event) => event,
            None => {
                let event =
                    trigger::descriptor().or_os("make an event for", &self.core.files.dir)?;
                if waiter.is_done {
                    trigger::ring(&event);
                }
                self.request.event.get_or_init(|| event)
            }
        };
        Ok(event.as_fd())
    }
}

impl Future for Completion {
    type Output = Result<()>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let mut waiter = self.request.waiter();
        match self.outcome() {
            Some(outcome) => Poll::Ready(outcome),
            // It was durable, and has been truncated away since.
            None if waiter.is_done => Poll::Ready(Ok(())),
            None => {
                waiter.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}
