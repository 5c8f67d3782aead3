//! Threads that are in the middle of something, in a process that may have lost the control file.
//!
//! Such a process stores into words that no other process sees (`shared::lost`), so it cannot
//! release its locks in the real words. It drops its liveness lock, and the others treat it as
//! dead. That is right once none of its threads changes a file because of a lock in the real words.
//! Appends have a slot while they do, everything else is [`Busy`].

use std::sync::{PoisonError, RwLockReadGuard};

use crate::log::state::attachment::Attachment;
use crate::log::state::core::{Core, Participation};

/// The calling thread holds a lock of the log, or writes a commit group; until dropped.
pub(crate) struct Busy<'a> {
    core: &'a Core,
    guard: Option<RwLockReadGuard<'a, ()>>,
}

impl<'a> Busy<'a> {
    /// To be held for as long as any lock of the log is, or longer.
    pub(crate) fn of(core: &'a Core, attachment: &'a Attachment) -> Busy<'a> {
        let guard = attachment.busy.read().unwrap_or_else(PoisonError::into_inner);
        Busy { core, guard: Some(guard) }
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.guard = None;
        step_back_if_lost(self.core);
    }
}

/// Steps back if the words are lost. To be called when the calling thread holds nothing any more.
#[inline]
pub(crate) fn step_back_if_lost(core: &Core) {
    if core.region.is_lost() {
        step_back(core);
    }
}

#[cold]
fn step_back(core: &Core) {
    if let Some(attachment) = core.writer.as_ref().and_then(Participation::own) {
        attachment.play_dead();
    }
}
