//! Answers whose time has not come: a thread keeps them, so that the next request is served
//! meanwhile.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::fuse::{self, Answer};

/// The kernel's habit of waking a thread up to 50 µs late would add to every delay.
const SLACK_NS: u64 = 1;

/// The way to the thread, which begins with the first answer that must wait.
#[derive(Debug)]
pub(crate) struct Later {
    connection: Arc<OwnedFd>,
    sender: Option<Sender<Waiting>>,
}

#[derive(Debug)]
struct Waiting {
    due: Instant,
    unique: u64,
    answer: Answer,
}

impl Later {
    pub(crate) fn new(connection: Arc<OwnedFd>) -> Later {
        Later { connection, sender: None }
    }

    /// Sends an answer when it is due.
    pub(crate) fn reply(&mut self, due: Instant, unique: u64, answer: Answer) {
        let sender = self.sender.get_or_insert_with(|| {
            let (sender, receiver) = channel();
            let connection = Arc::clone(&self.connection);
            thread::spawn(move || keep(&connection, &receiver));
            sender
        });
        // The thread ends after this side does.
        let _ = sender.send(Waiting { due, unique, answer });
    }
}

/// The life of the thread. It ends with the server; then no program waits for the answers that are
/// left.
fn keep(connection: &OwnedFd, receiver: &Receiver<Waiting>) {
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(SLACK_NS));
    let mut waiting = BinaryHeap::new();
    loop {
        let now = Instant::now();
        while waiting.peek().is_some_and(|Reverse(first): &Reverse<Waiting>| first.due <= now) {
            let Some(Reverse(first)) = waiting.pop() else { break };
            if fuse::reply(connection, first.unique, first.answer).is_err() {
                return;
            }
        }
        let pause = waiting.peek().map_or(Duration::MAX, |Reverse(first)| first.due - now);
        match receiver.recv_timeout(pause) {
            Ok(next) => waiting.push(Reverse(next)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Waiting) -> Ordering {
        (self.due, self.unique).cmp(&(other.due, other.unique))
    }
}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Waiting) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Waiting) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Waiting {}
