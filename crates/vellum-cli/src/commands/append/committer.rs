//! When records are committed, and what is said of them.
//!
//! With an interval, nothing runs beside the thread that reads and appends: before it waits for
//! input, it waits no longer than until the oldest record that was appended since the last commit
//! is due.

use std::cell::{Cell, Ref, RefCell};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionread};
use vellum::{ErrorKind, Log, Lsn};

use super::ending::Ending;
use crate::lowargs::CommitWhen;
use crate::outcome::Result;
use crate::output::say;

/// What is still read of the input when a signal asks to end: as much as a pipe holds.
const REST_BYTES_MAX: u64 = 1 << 20;

/// Commits records and acknowledges them.
pub(super) struct Committer {
    log: RefCell<Log>,
    when: CommitWhen,
    interval: Option<Duration>,
    is_acknowledging: bool,
    /// The newest record that is not committed.
    newest: Cell<Option<Lsn>>,
    /// When the oldest such record was appended, if it matters.
    oldest_at: Cell<Option<Instant>>,
    /// Positions to tell after the next commit.
    untold: RefCell<Vec<Lsn>>,
    /// What went wrong while input was waited for.
    failure: RefCell<Option<anyhow::Error>>,
}

impl Committer {
    pub(super) fn new(
        log: Log,
        when: CommitWhen,
        interval: Option<u64>,
        is_acknowledging: bool,
    ) -> Committer {
        Committer {
            log: RefCell::new(log),
            when,
            interval: interval.map(Duration::from_millis),
            is_acknowledging,
            newest: Cell::new(None),
            oldest_at: Cell::new(None),
            untold: RefCell::new(Vec::new()),
            failure: RefCell::new(None),
        }
    }

    /// The log that records go to.
    pub(super) fn log(&self) -> Ref<'_, Log> {
        self.log.borrow()
    }

    /// Goes on in the log that is at the path now, or makes one there: the old one was removed or
    /// moved.
    pub(super) fn reopen(&self) -> Result<()> {
        let new = self.log().reopen_or_create()?;
        // What was appended before is where the old log went, and is made to stay there.
        self.commit()?;
        self.log.replace(new);
        say(format_args!("the log was removed or moved, and goes on in a new one at its path"));
        Ok(())
    }

    /// Takes note of a record that was appended.
    pub(super) fn appended(&self, lsn: Lsn) -> Result<()> {
        if self.is_acknowledging {
            self.untold.borrow_mut().push(lsn);
        }
        match self.when {
            CommitWhen::None => return self.tell(),
            CommitWhen::Every => {
                self.newest.set(Some(lsn));
                return self.commit();
            }
            CommitWhen::End => self.newest.set(Some(lsn)),
        }
        if self.interval.is_some() && self.oldest_at.get().is_none() {
            self.oldest_at.set(Some(Instant::now()));
        }
        if self.remaining() == Some(Duration::ZERO) { self.commit() } else { Ok(()) }
    }

    /// Commits what has been appended, and tells.
    pub(super) fn commit(&self) -> Result<()> {
        if let Some(lsn) = self.newest.take() {
            match self.log().commit(lsn) {
                // Gone with the log, and not to be appended again.
                Err(error) if error.kind() == ErrorKind::Removed => {
                    say(format_args!("records up to {lsn} were not committed: {error}"));
                }
                answer => {
                    answer.with_context(|| format!("the record at {lsn} was not committed"))?;
                }
            }
        }
        self.oldest_at.set(None);
        self.tell()
    }

    /// What went wrong while input was waited for.
    pub(super) fn take_failure(&self) -> Option<anyhow::Error> {
        self.failure.take()
    }

    /// How long the oldest record that is not committed may wait; `None` without such a record.
    fn remaining(&self) -> Option<Duration> {
        let (oldest_at, interval) = self.oldest_at.get().zip(self.interval)?;
        Some(interval.saturating_sub(oldest_at.elapsed()))
    }

    fn tell(&self) -> Result<()> {
        let mut untold = self.untold.borrow_mut();
        let mut output = io::stdout().lock();
        for lsn in untold.drain(..) {
            // Standard output is flushed after each line, terminal or not.
            writeln!(output, "{lsn}").context("cannot write to standard output")?;
        }
        Ok(())
    }
}

/// Standard input, which is not waited for longer than a record may wait for its commit, nor behind
/// a signal that asks to end.
pub(super) struct Input<'a> {
    committer: &'a Committer,
    ending: &'a Ending,
    /// Without a buffer, in which input could not be noticed.
    file: File,
    /// What there was to read when a signal came, and is not read.
    rest: Option<u64>,
}

/// What became of waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waited {
    HasInput,
    IsAsked,
    InVain,
}

impl<'a> Input<'a> {
    pub(super) fn new(committer: &'a Committer, ending: &'a Ending) -> Result<Input<'a>> {
        let file = io::stdin().as_fd().try_clone_to_owned();
        let file = File::from(file.context("cannot read standard input")?);
        Ok(Input { committer, ending, file, rest: None })
    }

    /// Waits for input, or for a signal that asks to end; no longer than `remaining`.
    fn wait(&self, remaining: Option<Duration>) -> io::Result<Waited> {
        let timeout = remaining.map(Timespec::try_from).transpose();
        let timeout = timeout.map_err(|_| io::ErrorKind::InvalidInput)?;
        let mut fds = [
            PollFd::new(self.ending.asked(), PollFlags::IN),
            PollFd::new(&self.file, PollFlags::IN),
        ];
        match poll(&mut fds, timeout.as_ref()) {
            Err(Errno::INTR) => return Ok(Waited::InVain),
            answer => answer?,
        };
        Ok(match fds.map(|fd| !fd.revents().is_empty()) {
            [true, _] => Waited::IsAsked,
            [_, true] => Waited::HasInput,
            _ => Waited::InVain,
        })
    }

    /// Reads what was there when the signal came: who wrote it takes it for delivered.
    fn read_rest(&mut self, rest: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let most = buffer.len().min(rest as usize);
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let is_there = poll(&mut [PollFd::new(&self.file, PollFlags::IN)], Some(&now))? > 0;
        if most == 0 || !is_there {
            return Ok(0);
        }
        let count = self.file.read(&mut buffer[..most])?;
        self.rest = Some(rest - count as u64);
        Ok(count)
    }
}

impl Read for Input<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(rest) = self.rest {
                return self.read_rest(rest, buffer);
            }
            match self.wait(self.committer.remaining())? {
                Waited::HasInput => return self.file.read(buffer),
                // Nobody who asks wants to wait for a long file.
                Waited::IsAsked => {
                    self.rest = Some(ioctl_fionread(&self.file).unwrap_or(0).min(REST_BYTES_MAX));
                }
                Waited::InVain => {}
            }
            if self.committer.remaining() == Some(Duration::ZERO)
                && let Err(error) = self.committer.commit()
            {
                self.committer.failure.replace(Some(error));
                return Err(io::Error::other("a commit failed"));
            }
        }
    }
}
