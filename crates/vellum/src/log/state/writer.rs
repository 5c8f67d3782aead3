//! The writing side of a log: its core, and the calling process's place in it.
//!
//! Functions that only a participant may call take a `Writer`. It is two references, made for the
//! length of a call.
//!
//! The lock under which space is made ready, and files are named and removed, is [`Prepare`]: a
//! function that needs the lock takes one.
//!
//! **If the process dies here**: the next one takes the lock over, and repeats the unfinished
//! steps.

use crate::Result;
use crate::format::envelope::Envelope;
use crate::log::state::attachment::Attachment;
use crate::log::state::busy::Busy;
use crate::log::state::core::Core;
use crate::log::state::holds::{self, HoldKind};
use crate::log::state::wait;
use crate::shared::commit::CommitLock;
use crate::shared::lock::{self, Held, Outcome, Timeout, Until};
use crate::shared::participants::LockLiveness;
use crate::sys::clock;

/// A log, and the place that the calling process has in it.
#[derive(Clone, Copy)]
pub(crate) struct Writer<'a> {
    pub(crate) core: &'a Core,
    pub(crate) attachment: &'a Attachment,
}

impl Core {
    /// This process as a writer; attaches anew after a fork.
    #[inline]
    pub(crate) fn writer(&self) -> Result<Writer<'_>> {
        Ok(Writer { core: self, attachment: self.attachment()? })
    }
}

impl<'a> Writer<'a> {
    /// The liveness of the other participants, as this process can find it out.
    pub(crate) fn liveness(self) -> LockLiveness<'a> {
        self.attachment.liveness(self.core.words())
    }

    /// The envelope of a record that is appended now.
    ///
    /// Made when its place is reserved: so a writer that is stopped before that gets the time at
    /// which it continues, and records before it are no younger.
    #[inline]
    pub(crate) fn envelope(self) -> Envelope {
        Envelope { nanos: clock::nanos(), writer: self.attachment.writer_id() }
    }

    /// Notes that the calling thread is in the middle of something: for as long as it holds any
    /// lock of the log, or longer.
    pub(crate) fn busy(self) -> Busy<'a> {
        Busy::of(self.core, self.attachment)
    }

    /// Takes the lock that `what` is about.
    pub(crate) fn hold(self, what: HoldKind, busy: &Busy<'_>) -> Result<Held<'a>> {
        self.hold_until(what, wait::deadline(self.core), busy)
    }

    /// Takes the lock that `what` is about, by `until`.
    pub(crate) fn hold_until(self, what: HoldKind, until: Until, _: &Busy<'_>) -> Result<Held<'a>> {
        let lock = holds::lock_of(self.core, what).expect("a kind of lock");
        let (me, liveness) = (self.attachment.me(), self.liveness());
        let held = lock::acquire_within(lock, me, &liveness, Timeout::from(until));
        let held =
            held.ok_or_else(|| wait::timed_out(self.core, holds::of_lock(self.core, what)))?;
        self.core.check_region().map(|()| held)
    }

    /// Takes the commit lock, by `until`.
    pub(crate) fn lock_commits(self, until: Until, _: &Busy<'_>) -> Result<CommitLock<'a>> {
        let words = &self.core.words().commits;
        let lock = CommitLock::within(words, self.attachment.me(), &self.liveness(), until);
        let holder = || holds::of_lock(self.core, HoldKind::Commit);
        let lock = lock.ok_or_else(|| wait::timed_out(self.core, holder()))?;
        self.core.check_region().map(|()| lock)
    }

    /// Waits for the lock.
    pub(crate) fn lock_prepare(self) -> Result<Prepare<'a>> {
        self.lock_prepare_until(wait::deadline(self.core))
    }

    /// Waits for the lock no longer than `until`.
    pub(crate) fn lock_prepare_until(self, until: Until) -> Result<Prepare<'a>> {
        let busy = self.busy();
        let held = self.hold_until(HoldKind::Space, until, &busy)?;
        Ok(Prepare { writer: self, held: Some(held), busy })
    }

    /// Waits for the lock, or until `is_ready`: the holder makes space ready for all waiters.
    pub(crate) fn lock_prepare_unless(
        self,
        is_ready: impl Fn() -> bool,
    ) -> Result<Option<Prepare<'a>>> {
        let core = self.core;
        let (me, liveness, busy) = (self.attachment.me(), self.liveness(), self.busy());
        let (lock, timeout) = (&core.words().prepare, Timeout::from(wait::deadline(core)));
        let outcome = lock::acquire_unless(lock, me, &liveness, timeout, is_ready);
        core.check_region()?;
        match outcome {
            Outcome::Held(held) => Ok(Some(Prepare { writer: self, held: Some(held), busy })),
            Outcome::Needless => Ok(None),
            Outcome::TimedOut => Err(wait::timed_out(core, holds::of_lock(core, HoldKind::Space))),
        }
    }

    /// The lock, if it is free.
    pub(crate) fn try_lock_prepare(self) -> Option<Prepare<'a>> {
        let busy = self.busy();
        let held = lock::try_acquire(&self.core.words().prepare, self.attachment.me())?;
        self.core.check_region().is_ok().then_some(Prepare { writer: self, held: Some(held), busy })
    }
}

/// The lock, held until dropped.
pub(crate) struct Prepare<'a> {
    pub(crate) writer: Writer<'a>,
    held: Option<Held<'a>>,
    #[expect(dead_code, reason = "held for as long as the lock")]
    busy: Busy<'a>,
}

impl<'a> Prepare<'a> {
    /// For a process that is in the gate alone: no other process can take the lock.
    pub(crate) fn without_lock(writer: Writer<'a>) -> Prepare<'a> {
        Prepare { writer, held: None, busy: writer.busy() }
    }

    /// Has the waiters check their condition before the lock is free.
    pub(crate) fn wake_waiters(&self) {
        if let Some(held) = &self.held {
            held.wake_waiters();
        }
    }
}
