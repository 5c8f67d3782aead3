//! Leaving a log, being alone in it for a moment, and coming back.
//!
//! **If the process dies here**: detaching gives back slot by slot; the rest is found orphaned. The
//! kernel releases its locks.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use crate::Result;
use crate::error::OsResult;
use crate::log::open::trust;
use crate::log::repair::pad;
use crate::log::repair::shrink;
use crate::log::state::gate::Gate;
use crate::log::state::names::LOCK_NAME;
use crate::log::state::writer::Writer;
use crate::shared::participants::{self, Liveness, PRESENCE_BYTE};
use crate::sys::inherited::Marked;
use crate::sys::lock::{self, Kind};

impl Writer<'_> {
    /// Gives everything back; the last to leave tidies the end of the log.
    pub(crate) fn detach(self) -> Result<()> {
        let gate = Gate::enter(&self.core.dir);
        if participants::has_given_up_slots(self.core.words()) {
            // What cannot be padded is left to whoever can.
            let _ = pad::repair(self);
        }
        if let Ok(gate) = &gate {
            drop(self.attachment.presence().take());
            if gate.is_soon_alone(|| self.has_company()) == Ok(true) {
                // Another log may have taken the place; its files are not ours.
                if self.core.has_own_files() {
                    // An error leaves what is not durable in the stage, or a longer file.
                    let _ = self.end_commits();
                    let _ = shrink::to_data(self);
                    let _ = trust::note_closed(self.core);
                }
            }
        }
        self.attachment.empty_slots(self.core.words());
        let left = participants::detach(
            self.core.words(),
            self.attachment.lock_file(),
            self.attachment.me(),
        );
        left.or_os("unlock", &self.core.dir)
    }

    /// Enters the gate if no other process is present; the caller is not present meanwhile.
    pub(crate) fn enter_gate_alone(self) -> Result<Option<Gate>> {
        let gate = Gate::enter(&self.core.dir)?;
        // Before the old one goes: coming back must not depend on a free descriptor.
        let path = self.core.dir.join(LOCK_NAME);
        let fresh = Marked::open(&self.core.dir, &path).or_os("open", &path)?;
        drop(self.attachment.presence().replace(fresh));
        let is_alone = gate.is_soon_alone(|| self.has_company());
        if is_alone != Ok(true) {
            self.be_present().inspect_err(|_| self.go_adrift())?;
        }
        is_alone.map(|alone| alone.then_some(gate)).or_os("lock", &path)
    }

    /// Leaves the gate, present again.
    pub(crate) fn leave_gate(self, gate: Gate) -> Result<()> {
        let present = gate.let_in().or_os("unlock", &self.core.dir);
        present.and_then(|()| self.be_present()).inspect_err(|_| self.go_adrift())
    }

    /// Joins the log again, as who opens it would.
    #[cold]
    pub(crate) fn come_back(self) -> Result<()> {
        let presence = self.attachment.presence();
        let Some(file) =
            presence.as_ref().filter(|_| self.attachment.is_adrift.load(Ordering::SeqCst))
        else {
            return Ok(());
        };
        let gate = Gate::enter(&self.core.dir)?;
        self.core.check_poison()?;
        self.core.check_words()?;
        let is_first = gate.is_alone().or_os("lock", &self.core.dir)?;
        self.core.join_stage(is_first)?;
        if is_first {
            self.core.region.origin().iter().for_each(|origin| origin.reopen());
            gate.let_in().or_os("unlock", &self.core.dir)?;
        }
        lock::lock(file.fd(), PRESENCE_BYTE, Kind::Shared).or_os("lock", &self.core.dir)?;
        self.attachment.is_adrift.store(false, Ordering::SeqCst);
        Ok(())
    }

    /// Keeps this process from appending until it has come back.
    #[cold]
    fn go_adrift(self) {
        self.attachment.is_adrift.store(true, Ordering::SeqCst);
        self.attachment.empty_slots(self.core.words());
        self.attachment.segments.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Whether another participant is attached.
    fn has_company(self) -> bool {
        let liveness = self.liveness();
        let mut others = participants::attached(self.core.words())
            .filter(|(owner, _)| *owner != self.attachment.me());
        others.any(|(owner, _)| liveness.is_alive(owner))
    }

    fn be_present(self) -> Result<()> {
        let presence = self.attachment.presence();
        let Some(presence) = &*presence else { return Ok(()) };
        lock::lock(presence.fd(), PRESENCE_BYTE, Kind::Shared).or_os("lock", &self.core.dir)
    }
}
