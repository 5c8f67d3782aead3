//! Leaving a log, being alone in it for a moment, and coming back.
//!
//! **If the process dies here**: detaching gives back slot by slot; the rest is found orphaned. The
//! kernel releases its locks.

use std::sync::atomic::Ordering;

use crate::Result;
use crate::error::OsResult;
use crate::files::names::LOCK_NAME;
use crate::log::ready::stage;
use crate::log::state::attachment::OpenSegments;
use crate::log::state::gate::Gate;
use crate::log::state::poison;
use crate::log::state::writer::Writer;
use crate::shared::participants::{self, Liveness, PRESENCE_BYTE};
use crate::sys::inherited::Marked;
use crate::sys::lock::{self, Kind};

/// A participant among the others: it comes, goes, and comes back.
#[derive(Clone, Copy)]
pub(crate) struct Presence<'a> {
    pub(crate) writer: Writer<'a>,
}

impl<'a> Presence<'a> {
    #[inline]
    pub(crate) fn of(writer: Writer<'a>) -> Presence<'a> {
        Presence { writer }
    }
}

impl Presence<'_> {
    /// Runs `act` while no other process is attached, nor can be; `None` where one is.
    pub(crate) fn alone<T>(self, act: impl FnOnce() -> Result<Option<T>>) -> Result<Option<T>> {
        let Some(gate) = self.enter_gate_alone()? else { return Ok(None) };
        let answer = act();
        self.leave_gate(gate)?;
        answer
    }

    /// Enters the gate if no other process is present; the caller is not present meanwhile.
    pub(crate) fn enter_gate_alone(self) -> Result<Option<Gate>> {
        let gate = Gate::enter(&self.writer.core.files.dir)?;
        // Before the old one goes: coming back must not depend on a free descriptor.
        let path = self.writer.core.files.dir.join(LOCK_NAME);
        let fresh = Marked::open(&self.writer.core.files.dir, &path).or_os("open", &path)?;
        drop(self.writer.attachment.presence().replace(fresh));
        let is_alone = gate.is_soon_alone(|| self.has_company());
        if is_alone != Ok(true) {
            self.be_present().inspect_err(|_| self.go_adrift())?;
        }
        is_alone.map(|alone| alone.then_some(gate)).or_os("lock", &path)
    }

    /// Leaves the gate, present again.
    pub(crate) fn leave_gate(self, gate: Gate) -> Result<()> {
        let present = gate.let_in().or_os("unlock", &self.writer.core.files.dir);
        present.and_then(|()| self.be_present()).inspect_err(|_| self.go_adrift())
    }

    /// Joins the log again, as an opener would.
    #[cold]
    pub(crate) fn come_back(self) -> Result<()> {
        let presence = self.writer.attachment.presence();
        let Some(file) =
            presence.as_ref().filter(|_| self.writer.attachment.is_adrift.load(Ordering::SeqCst))
        else {
            return Ok(());
        };
        let gate = Gate::enter(&self.writer.core.files.dir)?;
        poison::check(self.writer.core)?;
        self.writer.core.check_words()?;
        let is_first = gate.is_alone().or_os("lock", &self.writer.core.files.dir)?;
        stage::join(self.writer.core, is_first, None)?;
        if is_first {
            self.writer.core.region.origin().iter().for_each(|origin| origin.reopen());
            gate.let_in().or_os("unlock", &self.writer.core.files.dir)?;
        }
        lock::lock(file.fd(), PRESENCE_BYTE, Kind::Shared)
            .or_os("lock", &self.writer.core.files.dir)?;
        self.writer.attachment.is_adrift.store(false, Ordering::SeqCst);
        Ok(())
    }

    /// Keeps this process from appending until it has come back.
    #[cold]
    fn go_adrift(self) {
        self.writer.attachment.is_adrift.store(true, Ordering::SeqCst);
        self.writer.attachment.empty_slots(self.writer.core.words());
        *self.writer.attachment.open_segments() = OpenSegments::default();
    }

    /// Whether another participant is attached.
    pub(crate) fn has_company(self) -> bool {
        let liveness = self.writer.liveness();
        let mut others = participants::attached(self.writer.core.words())
            .filter(|(owner, _)| *owner != self.writer.attachment.me());
        others.any(|(owner, _)| liveness.is_alive(owner))
    }

    fn be_present(self) -> Result<()> {
        let presence = self.writer.attachment.presence();
        let Some(presence) = &*presence else { return Ok(()) };
        lock::lock(presence.fd(), PRESENCE_BYTE, Kind::Shared)
            .or_os("lock", &self.writer.core.files.dir)
    }
}
