//! The lock under which space is made ready, and files are named and removed.
//!
//! What may be done only while it is held are methods of [`Prepare`].
//!
//! **If the process dies here**: the next one takes the lock over, and does what was half done
//! again.

use crate::Result;
use crate::log::state::busy::Busy;
use crate::log::state::holds::{self, HoldKind};
use crate::log::state::writer::Writer;
use crate::shared::lock::{self, Held, Outcome, Patience, Until};

/// The lock, held until dropped.
pub(crate) struct Prepare<'a> {
    pub(crate) writer: Writer<'a>,
    held: Option<Held<'a>>,
    #[expect(dead_code, reason = "held for as long as the lock")]
    busy: Busy<'a>,
}

impl<'a> Prepare<'a> {
    /// For a process that is in the gate alone: nobody else can take the lock.
    pub(crate) fn without_lock(writer: Writer<'a>) -> Prepare<'a> {
        Prepare { writer, held: None, busy: Busy::of(writer) }
    }

    /// Has those who wait look whether what they wait for is there, before the lock is free.
    pub(crate) fn wake_waiters(&self) {
        if let Some(held) = &self.held {
            held.wake_waiters();
        }
    }
}

impl<'a> Writer<'a> {
    /// Waits for the lock.
    pub(crate) fn lock_prepare(self) -> Result<Prepare<'a>> {
        self.lock_prepare_until(self.core.deadline())
    }

    /// Waits for the lock no longer than `until`.
    pub(crate) fn lock_prepare_until(self, until: Until) -> Result<Prepare<'a>> {
        let busy = Busy::of(self);
        let held = self.hold_until(HoldKind::Prepare, until, &busy)?;
        Ok(Prepare { writer: self, held: Some(held), busy })
    }

    /// Waits for the lock, or until `is_ready`: what the holder makes ready is for all who wait.
    pub(crate) fn lock_prepare_unless(
        self,
        is_ready: impl Fn() -> bool,
    ) -> Result<Option<Prepare<'a>>> {
        let core = self.core;
        let (me, liveness, busy) = (self.attachment.me(), self.liveness(), Busy::of(self));
        let (lock, patience) = (&core.words().prepare, Patience::from(core.deadline()));
        let outcome = lock::acquire_unless(lock, me, &liveness, patience, is_ready);
        core.check_region()?;
        match outcome {
            Outcome::Held(held) => Ok(Some(Prepare { writer: self, held: Some(held), busy })),
            Outcome::Needless => Ok(None),
            Outcome::TimedOut => Err(core.timed_out(holds::of_lock(core, HoldKind::Prepare))),
        }
    }

    /// The lock, if nobody holds it.
    pub(crate) fn try_lock_prepare(self) -> Option<Prepare<'a>> {
        let busy = Busy::of(self);
        let held = lock::try_acquire(&self.core.words().prepare, self.attachment.me())?;
        self.core.check_region().is_ok().then_some(Prepare { writer: self, held: Some(held), busy })
    }
}
