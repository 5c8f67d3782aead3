//! The lock under which text is written.
//!
//! Where text is written by system calls, one at a time reserves and writes. Otherwise a complete
//! line could be behind a hole for an instant, and a program that follows the file would take the
//! hole for NULs, and never come back for the line that belongs there. A filesystem lets one write
//! at a time into a file anyway.
//!
//! A process that does not get it within a few microseconds sleeps for a moment, and is not woken:
//! a processor that writes one line after the other does more than two that pass the file back and
//! forth, and waking costs as much as writing a line.
//!
//! No holder is waited for forever: after a tenth of a second of one and the same hold, a process
//! continues without the lock until it gets it again. Then there can be holes, which Vellum's own
//! readers do not see.
//!
//! **If the process dies here**: the next one that has the lock pads what the dead had reserved,
//! before it writes behind that.

use std::time::Duration;

use crate::log::layout::text::TextWriter;
use crate::log::repair::pad;
use crate::log::state::attachment::Attachment;
use crate::shared::lock::{self, Held, Timeout};
use crate::shared::primitive::{self, Ordering};
use crate::shared::tail_word::{self, Grant};
use crate::shared::words::{Alone, LockWords, WatchedLockWords};

/// Looks at the lock before sleeping.
const LOOKS: u32 = 4;
/// How long between them: about as long as a write takes, so that a process that writes line after
/// line is rarely met between two.
const SPINS: u32 = 96;
/// How long to sleep then.
const PAUSE: Duration = Duration::from_micros(50);
/// So many pauses within one hold, and its holder may be dead or stopped.
const PAUSES_MAX: u32 = 20;
/// Sleeps of `lock` after that, of 5 ms each; fewer where calls may not wait for so long.
const SLEEPS_MAX: u32 = 20;
const SLEEP_MILLIS: u128 = 5;

/// The lock, until dropped.
pub(crate) struct TextWriteLock<'a> {
    words: &'a LockWords,
    _held: Held<'a>,
}

impl Drop for TextWriteLock<'_> {
    fn drop(&mut self) {
        // Only the holder counts; others see from it that the lock changes hands.
        self.words.count_release();
    }
}

impl<'a> TextWriter<'a> {
    /// Takes the lock; `None` where its holder keeps it too long.
    #[inline]
    pub(crate) fn lock_for_text(self) -> Option<TextWriteLock<'a>> {
        let words = &self.writer.core.words().files.write_lock;
        let held = match lock::try_acquire(words, self.writer.attachment.me()) {
            Some(held) => held,
            None => self.wait_for_lock(words)?,
        };
        Some(TextWriteLock { words, _held: held })
    }

    #[cold]
    fn wait_for_lock(self, words: &'a Alone<WatchedLockWords>) -> Option<Held<'a>> {
        let given_up = self.writer.attachment.given_up.load(Ordering::Relaxed);
        let (mut seen, mut pauses) = (words.hold(), 0);
        let held = loop {
            if let Some(held) = look(self.writer.attachment, words) {
                break Some(held);
            }
            if given_up != 0 && seen.0 == given_up {
                return None;
            }
            std::thread::sleep(PAUSE);
            let now = words.hold();
            pauses = if now == seen { pauses + 1 } else { 0 };
            seen = now;
            if pauses == PAUSES_MAX {
                let liveness = self.writer.liveness();
                let most = self
                    .writer
                    .core
                    .choices
                    .timeout
                    .map_or(u128::MAX, |time| time.as_millis() / SLEEP_MILLIS);
                let timeout = Timeout::Sleeps(most.min(SLEEPS_MAX.into()) as u32);
                break lock::acquire_within(words, self.writer.attachment.me(), &liveness, timeout);
            }
        };
        let given_up = if held.is_some() { 0 } else { seen.0 };
        self.writer.attachment.given_up.store(given_up, Ordering::Relaxed);
        held
    }

    /// Has what the dead have reserved before `grant` padded. The lock is held.
    #[inline]
    pub(crate) fn pad_before(self, grant: Grant) {
        if !tail_word::is_next(self.writer.core.words(), grant)
            && pad::is_held_back_by_the_dead(self.writer)
        {
            // An error here is reported to a reader, or to the next process that comes to that
            // slot.
            let _ = pad::repair(self.writer);
        }
    }
}

fn look<'a>(attachment: &Attachment, words: &'a LockWords) -> Option<Held<'a>> {
    (0..LOOKS).find_map(|_| {
        (0..SPINS).for_each(|_| primitive::spin_loop());
        lock::try_acquire(words, attachment.me())
    })
}
