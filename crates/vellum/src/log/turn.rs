//! Taking turns at writing text.
//!
//! Where text is written by system calls, one at a time reserves and writes. Otherwise a line that
//! is complete could stand behind a hole for an instant, and a program that follows the file would
//! take the hole for NULs, and never come back for the line that belongs there. Turns cost little,
//! because a filesystem lets one write at a time into a file anyway.
//!
//! Nobody is waited for forever: after `PATIENCE` with the same one at it, a process goes on without
//! turns until it gets one again. Then there can be holes, which Vellum's own readers do not see.
//!
//! **If the process dies here**: the next one to have its turn pads what the dead had reserved,
//! before it writes behind that.

use crate::log::attachment::Attachment;
use crate::log::core::Core;
use crate::log::pad;
use crate::shared::cursor::{self, Grant};
use crate::shared::lock::{self, Held};
use crate::shared::primitive::{self, Ordering};
use crate::{Fill, Layout};

/// Looks at the turn before sleeping until it is over: about twice as long as a write takes.
const SPINS: u32 = 256;
/// Sleeps of `lock`, of 5 ms each.
const PATIENCE: u32 = 20;

impl Core {
    /// Takes a turn where writes are to be seen in their order; `None` where they are not, or where
    /// there is none to be had.
    #[inline]
    pub(crate) fn take_turn(&self, attachment: &Attachment) -> Option<Held<'_>> {
        let is_seen = self.geometry.layout == Layout::Text && self.geometry.fill == Fill::Pwrite;
        if is_seen { self.wait_for_turn(attachment) } else { None }
    }

    fn wait_for_turn(&self, attachment: &Attachment) -> Option<Held<'_>> {
        let words = &self.words().files.turn;
        for _ in 0..SPINS {
            if let Some(held) = lock::try_acquire(words, attachment.me()) {
                attachment.given_up.store(0, Ordering::Relaxed);
                return Some(held);
            }
            primitive::spin_loop();
        }
        let given_up = attachment.given_up.load(Ordering::Relaxed);
        if given_up != 0 && words.holder.load(Ordering::Relaxed) == given_up {
            return None;
        }
        let held = lock::acquire_within(words, attachment.me(), &self.census(attachment), PATIENCE);
        let holder = if held.is_some() { 0 } else { words.holder.load(Ordering::Relaxed) };
        attachment.given_up.store(holder, Ordering::Relaxed);
        held
    }

    /// Has what the dead have reserved before `grant` padded. To be called in a turn.
    #[inline]
    pub(crate) fn pad_before(&self, attachment: &Attachment, grant: Grant) {
        if !cursor::is_next(self.words(), grant) && pad::is_held_back_by_the_dead(self, attachment)
        {
            // What goes wrong here is reported to who reads, or comes to that slot.
            let _ = pad::repair(self, attachment);
        }
    }
}
