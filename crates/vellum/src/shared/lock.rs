//! A lock between processes that outlives its holder's death.
//!
//! The word names the holder. Who finds it taken asks whether the holder lives; a dead holder's
//! lock is taken over. No time decides: waiting threads look again every few milliseconds, because
//! nobody rings when a process dies, but only a death lets them in.
//!
//! **If the process dies here**: holding the lock, its work may be half done. Whatever is done
//! under a lock is therefore written so that doing it again is right.

use std::time::Duration;

use super::participants::{Liveness, Owner};
use super::primitive::{self, Ordering};
use super::words::LockWords;

/// How long to sleep before asking again whether the holder lives.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// The lock, held until dropped.
pub(crate) struct Held<'a> {
    words: &'a LockWords,
    me: Owner,
}

/// Takes the lock, waiting for a living holder.
pub(crate) fn acquire<'a>(words: &'a LockWords, me: Owner, who: &impl Liveness) -> Held<'a> {
    loop {
        if let Some(held) = try_acquire(words, me, who) {
            return held;
        }
        words.contended.store(1, Ordering::SeqCst);
        let releases = words.releases.load(Ordering::SeqCst);
        if words.holder.load(Ordering::SeqCst) != 0 {
            primitive::wait(&words.releases, releases, LOOK_AGAIN);
        }
    }
}

/// Takes the lock if it is free or its holder is dead.
pub(crate) fn try_acquire<'a>(
    words: &'a LockWords,
    me: Owner,
    who: &impl Liveness,
) -> Option<Held<'a>> {
    let holder = words.holder.load(Ordering::Relaxed);
    // An owner is never reused (its generation grows), so the exchange cannot take the lock from
    // a new life of the dead holder's place.
    if holder != 0 && who.is_alive(Owner::from_word(holder)) {
        return None;
    }
    words
        .holder
        .compare_exchange(holder, me.to_word(), Ordering::Acquire, Ordering::Relaxed)
        .is_ok()
        .then_some(Held { words, me })
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let me = self.me.to_word();
        // An exchange, not a store: after a scribble on the word the lock may be somebody else's.
        let _ = self
            .words
            .holder
            .compare_exchange(me, 0, Ordering::SeqCst, Ordering::Relaxed);
        if self.words.contended.load(Ordering::SeqCst) != 0 {
            self.words.contended.store(0, Ordering::SeqCst);
            self.words.releases.fetch_add(1, Ordering::SeqCst);
            primitive::wake_all(&self.words.releases);
        }
    }
}
