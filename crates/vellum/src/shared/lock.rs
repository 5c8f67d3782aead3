//! A lock between processes that outlives its holder's death.
//!
//! The word names the holder. Who waits for it in vain asks whether the holder lives; a dead
//! holder's lock is taken over. No time decides: waiting threads ask every few milliseconds,
//! because nobody rings when a process dies, but only a death lets them in.
//!
//! **If the process dies here**: holding the lock, its work may be half done. Whatever is done
//! under a lock is therefore written so that doing it again is right.

use std::time::Duration;

use super::participants::{Liveness, Owner};
use super::primitive::{self, Ordering};
use super::words::LockWords;

/// How long to sleep before asking whether the holder lives: asking costs a few system calls.
const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// How often to look before sleeping: most holders are done within a microsecond.
const SPINS: u32 = 64;

/// The lock, held until dropped.
pub(crate) struct Held<'a> {
    words: &'a LockWords,
    me: Owner,
}

/// Takes the lock, waiting for a living holder.
pub(crate) fn acquire<'a>(words: &'a LockWords, me: Owner, who: &impl Liveness) -> Held<'a> {
    loop {
        if let Some(held) = acquire_within(words, me, who, u32::MAX) {
            return held;
        }
    }
}

/// Takes the lock, waiting for a living holder, but for the same one only `patience` sleeps.
pub(crate) fn acquire_within<'a>(
    words: &'a LockWords,
    me: Owner,
    who: &impl Liveness,
    patience: u32,
) -> Option<Held<'a>> {
    let mut sleeps = 0;
    loop {
        for _ in 0..SPINS {
            if let Some(held) = take(words, 0, me) {
                return Some(held);
            }
            primitive::spin_loop();
        }
        // Before `contended`: who releases takes that back first and counts then, so either this
        // count is old and the sleep ends at once, or the next release sees `contended`.
        let releases = words.releases.load(Ordering::SeqCst);
        words.contended.store(1, Ordering::SeqCst);
        let holder = words.holder.load(Ordering::SeqCst);
        if holder == 0 {
            continue;
        }
        primitive::wait(&words.releases, releases, LOOK_AGAIN);
        // Still the same after all that time: perhaps it will never let go.
        let is_stuck = words.holder.load(Ordering::Relaxed) == holder
            && words.releases.load(Ordering::Relaxed) == releases;
        sleeps = if is_stuck { sleeps + 1 } else { 0 };
        if is_stuck
            && !who.is_alive(Owner::from_word(holder))
            && let Some(held) = take(words, holder, me)
        {
            return Some(held);
        }
        if sleeps == patience {
            return None;
        }
    }
}

/// Takes the lock if nobody holds it.
pub(crate) fn try_acquire(words: &LockWords, me: Owner) -> Option<Held<'_>> {
    take(words, 0, me)
}

/// Takes the lock from `holder`, which is nobody or dead.
fn take(words: &LockWords, holder: u64, me: Owner) -> Option<Held<'_>> {
    // An owner is never reused (its generation grows), so the exchange cannot take the lock from
    // a new life of the dead holder's place.
    let is_same = words.holder.load(Ordering::Relaxed) == holder;
    let me_word = me.to_word();
    let exchange =
        || words.holder.compare_exchange(holder, me_word, Ordering::Acquire, Ordering::Relaxed);
    // Made only if it is ours: dropping one lets go.
    (is_same && exchange().is_ok()).then(|| Held { words, me })
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let me = self.me.to_word();
        // An exchange, not a store: after a scribble on the word the lock may be somebody else's.
        let _ = self.words.holder.compare_exchange(me, 0, Ordering::SeqCst, Ordering::Relaxed);
        if self.words.contended.load(Ordering::SeqCst) != 0 {
            self.words.contended.store(0, Ordering::SeqCst);
            self.words.releases.fetch_add(1, Ordering::SeqCst);
            primitive::wake_all(&self.words.releases);
        }
    }
}
