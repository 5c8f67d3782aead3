//! Leaving a log, being alone in it for a moment, and coming back.
//!
//! **If the process dies here**: detaching gives back slot by slot; the rest is found orphaned. The
//! kernel releases its locks.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use crate::Result;
use crate::error::OsResult;
use crate::log::attachment::Attachment;
use crate::log::core::Core;
use crate::log::gate::Gate;
use crate::log::names::LOCK_NAME;
use crate::log::{pad, shrink, trust};
use crate::shared::participants::{self, Liveness, PRESENCE_BYTE};
use crate::sys::inherited::Marked;
use crate::sys::lock::{self, Kind};

impl Attachment {
    /// Gives everything back; the last to leave tidies the end of the log.
    pub(crate) fn detach(&self, core: &Core) -> Result<()> {
        let gate = Gate::enter(&core.dir);
        if participants::has_given_up_slots(core.words()) {
            // What cannot be padded is left to whoever can.
            let _ = pad::repair(core, self);
        }
        if let Ok(gate) = &gate {
            drop(self.presence().take());
            if gate.is_soon_alone(|| self.has_company(core)) == Ok(true) {
                // Another log may have taken the place; its files are not ours.
                if core.has_own_files() {
                    // An error leaves what is not durable in the stage, or a longer file.
                    let _ = core.end_commits(self);
                    let _ = shrink::to_data(core, self);
                    let _ = trust::note_closed(core);
                }
            }
        }
        self.empty_slots(core.words());
        let left = participants::detach(core.words(), self.lock_file(), self.me());
        left.or_os("unlock", &core.dir)
    }

    /// Enters the gate if no other process is present; the caller is not present meanwhile.
    pub(crate) fn enter_gate_alone(&self, core: &Core) -> Result<Option<Gate>> {
        let gate = Gate::enter(&core.dir)?;
        // Before the old one goes: coming back must not depend on a free descriptor.
        let path = core.dir.join(LOCK_NAME);
        let fresh = Marked::open(&core.dir, &path).or_os("open", &path)?;
        drop(self.presence().replace(fresh));
        let is_alone = gate.is_soon_alone(|| self.has_company(core));
        if is_alone != Ok(true) {
            self.be_present(core).inspect_err(|_| self.go_adrift(core))?;
        }
        is_alone.map(|alone| alone.then_some(gate)).or_os("lock", &path)
    }

    /// Leaves the gate, present again.
    pub(crate) fn leave_gate(&self, core: &Core, gate: Gate) -> Result<()> {
        let present = gate.let_in().or_os("unlock", &core.dir);
        present.and_then(|()| self.be_present(core)).inspect_err(|_| self.go_adrift(core))
    }

    /// Joins the log again, as who opens it would.
    #[cold]
    pub(crate) fn come_back(&self, core: &Core) -> Result<()> {
        let presence = self.presence();
        let Some(file) = presence.as_ref().filter(|_| self.is_adrift.load(Ordering::SeqCst)) else {
            return Ok(());
        };
        let gate = Gate::enter(&core.dir)?;
        core.check_poison()?;
        core.check_words()?;
        let is_first = gate.is_alone().or_os("lock", &core.dir)?;
        core.join_stage(is_first)?;
        if is_first {
            core.region.origin().iter().for_each(|origin| origin.reopen());
            gate.let_in().or_os("unlock", &core.dir)?;
        }
        lock::lock(file.fd(), PRESENCE_BYTE, Kind::Shared).or_os("lock", &core.dir)?;
        self.is_adrift.store(false, Ordering::SeqCst);
        Ok(())
    }

    /// Keeps this process from appending until it has come back.
    #[cold]
    fn go_adrift(&self, core: &Core) {
        self.is_adrift.store(true, Ordering::SeqCst);
        self.empty_slots(core.words());
        self.segments.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Whether another participant is attached.
    fn has_company(&self, core: &Core) -> bool {
        let census = core.census(self);
        let mut others =
            participants::attached(core.words()).filter(|(owner, _)| *owner != self.me());
        others.any(|(owner, _)| census.is_alive(owner))
    }

    fn be_present(&self, core: &Core) -> Result<()> {
        let presence = self.presence();
        let Some(presence) = &*presence else { return Ok(()) };
        lock::lock(presence.fd(), PRESENCE_BYTE, Kind::Shared).or_os("lock", &core.dir)
    }
}
