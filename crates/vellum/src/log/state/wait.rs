//! Waiting for others no longer than the caller wants, and naming who was waited for in vain.
//!
//! A call that gives up has reserved nothing and holds nothing. What others wait for it to do, it
//! leaves as a process that dies there does: whoever waits does it.

use std::time::{Duration, Instant};

use crate::log::state::busy::Busy;
use crate::log::state::core::Core;
use crate::log::state::holds::{self, Hold, HoldKind};
use crate::log::state::writer::Writer;
use crate::shared::commit::Sealer;
use crate::shared::lock::{self, Held, Patience, Until};
use crate::shared::tail_word;
use crate::{Error, ErrorKind, Lsn, Result};

/// `timeout` from now on; one beyond the clock's end is none.
pub(crate) fn after(timeout: Duration) -> Until {
    Instant::now().checked_add(timeout)
}

/// Whether it is time to give up.
pub(crate) fn is_over(until: Until) -> bool {
    until.is_some_and(|end| Instant::now() >= end)
}

impl Core {
    /// Until when a wait that begins now may last.
    pub(crate) fn deadline(&self) -> Until {
        self.choices.timeout.and_then(after)
    }

    /// The error of who has waited in vain for everything before `end` to be durable.
    #[cold]
    pub(crate) fn commit_timed_out(&self, end: Lsn) -> Error {
        let batch = || holds::batches(self).min_by_key(|hold| hold.range.map(|r| r.first_lsn));
        let append = || {
            let is_waited_for = tail_word::published(self.words()) < end;
            is_waited_for.then(|| holds::oldest_append(self)).flatten()
        };
        let lock = || holds::of_lock(self, HoldKind::Commit);
        self.timed_out(batch().or_else(append).or_else(lock))
    }

    /// The error of who has waited in vain for others to commit the record at `lsn`.
    #[cold]
    pub(crate) fn not_durable_yet(&self, lsn: Lsn) -> Error {
        let batch = holds::batches(self).min_by_key(|hold| hold.range.map(|r| r.first_lsn));
        let blame = batch.map_or_else(
            || format!("nobody has committed position {lsn}"),
            |hold| hold.to_string(),
        );
        self.gave_up(&blame)
    }

    /// The error of who has waited in vain for what `hold` says.
    #[cold]
    pub(crate) fn timed_out(&self, hold: Option<Hold>) -> Error {
        let blame = hold.map_or_else(
            || "others came first, one after the other".to_string(),
            |hold| hold.to_string(),
        );
        self.gave_up(&blame)
    }

    #[cold]
    fn gave_up(&self, blame: &str) -> Error {
        let message = format!("gave up waiting: {blame}");
        Error::new(ErrorKind::TimedOut, message).at_path(&self.dir)
    }
}

impl<'a> Writer<'a> {
    /// Takes the lock that `what` is about.
    pub(crate) fn hold(self, what: HoldKind, busy: &Busy<'_>) -> Result<Held<'a>> {
        self.hold_until(what, self.core.deadline(), busy)
    }

    /// Takes the lock that `what` is about, by `until`.
    pub(crate) fn hold_until(self, what: HoldKind, until: Until, _: &Busy<'_>) -> Result<Held<'a>> {
        let lock = self.core.lock_of(what).expect("a kind of lock");
        let (me, liveness) = (self.attachment.me(), self.liveness());
        let held = lock::acquire_within(lock, me, &liveness, Patience::from(until));
        let held = held.ok_or_else(|| self.core.timed_out(holds::of_lock(self.core, what)))?;
        self.core.check_region().map(|()| held)
    }

    /// Takes the right to seal, by `until`.
    pub(crate) fn sealer(self, until: Until, _: &Busy<'_>) -> Result<Sealer<'a>> {
        let words = &self.core.words().commits;
        let sealer = Sealer::within(words, self.attachment.me(), &self.liveness(), until);
        let sealer = sealer
            .ok_or_else(|| self.core.timed_out(holds::of_lock(self.core, HoldKind::Commit)))?;
        self.core.check_region().map(|()| sealer)
    }
}
