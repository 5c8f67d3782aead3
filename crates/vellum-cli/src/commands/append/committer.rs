//! When records are committed, and the reports of them.
//!
//! With an interval, nothing runs beside the thread that reads and appends: before it waits for
//! input, it waits no longer than until the oldest record that was appended since the last commit
//! is due.

use std::cell::{Cell, Ref, RefCell};
use std::io;
use std::time::{Duration, Instant};

use anyhow::Context;
use vellum::{ErrorKind, Log, Lsn};
use vellum_command::outcome::Result;
use vellum_command::output::{self, say};

use crate::args::CommitWhen;

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
    /// The failure while input was waited for.
    failure: RefCell<Option<anyhow::Error>>,
}

impl Committer {
    pub(super) fn new(
        log: Log,
        when: CommitWhen,
        interval: Option<Duration>,
        is_acknowledging: bool,
    ) -> Committer {
        Committer {
            log: RefCell::new(log),
            when,
            interval,
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

    /// Continues in the log that is at the path now, or makes one there: the old one was removed or
    /// moved.
    pub(super) fn reopen(&self) -> Result<()> {
        let new = self.log().reopen()?;
        // The earlier records are where the old log went, and are made to stay there.
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

    /// Commits if a record is due, while input is waited for.
    pub(super) fn commit_if_due(&self) -> io::Result<()> {
        if self.remaining() == Some(Duration::ZERO)
            && let Err(error) = self.commit()
        {
            self.failure.replace(Some(error));
            return Err(io::Error::other("a commit failed"));
        }
        Ok(())
    }

    /// The failure while input was waited for.
    pub(super) fn take_failure(&self) -> Option<anyhow::Error> {
        self.failure.take()
    }

    /// How long the oldest record that is not committed may wait; `None` without such a record.
    pub(super) fn remaining(&self) -> Option<Duration> {
        let (oldest_at, interval) = self.oldest_at.get().zip(self.interval)?;
        Some(interval.saturating_sub(oldest_at.elapsed()))
    }

    fn tell(&self) -> Result<()> {
        let lines: String =
            self.untold.borrow_mut().drain(..).map(|lsn| format!("{lsn}\n")).collect();
        if lines.is_empty() { Ok(()) } else { output::print(&lines) }
    }
}
