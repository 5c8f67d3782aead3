//! A lock between processes that outlives its holder's death.
//!
//! The word names the holder. A process that waits for it in vain checks whether the holder lives;
//! a dead holder's lock is taken over. No time decides: waiting threads check every few
//! milliseconds, because a death wakes no waiter, but only a death lets them in. A caller that may
//! not wait for ever gives up instead, and has changed nothing.
//!
//! **If the process dies here**: holding the lock, its work may be half done. Whatever is done
//! under a lock is therefore written so that doing it again is right.

use std::time::{Duration, Instant};

use super::notice::Holding;
use super::participants::{Liveness, Owner};
use super::primitive::{self, Ordering};
use super::words::{Alone, FullWords, LockWords, NoticeWords, WatchedLockWords};

/// How long to sleep before asking whether the holder lives: asking costs a few system calls.
const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// How often to look before sleeping: most holders are done within a microsecond.
const SPINS: u32 = if cfg!(all(loom, test)) { 1 } else { 64 };

/// A lock, and the note of its waiters.
#[derive(Clone, Copy)]
pub(crate) struct Watched<'a> {
    words: &'a LockWords,
    noticed: &'a NoticeWords,
}

impl<'a> From<&'a Alone<WatchedLockWords>> for Watched<'a> {
    fn from(words: &'a Alone<WatchedLockWords>) -> Watched<'a> {
        Watched { words: &words.lock, noticed: &words.noticed }
    }
}

impl<'a> From<&'a Alone<FullWords>> for Watched<'a> {
    fn from(words: &'a Alone<FullWords>) -> Watched<'a> {
        Watched { words: &words.lock, noticed: &words.noticed }
    }
}

impl Watched<'_> {
    /// The holder, and since when a thread waits for that one, in microseconds of the machine's own
    /// clock.
    pub(crate) fn holder(self) -> Option<(Owner, Option<u64>)> {
        let holding = self.holding();
        let since = || self.noticed.since(holding);
        (holding.holder != 0).then(|| (Owner::from_word(holding.holder), since()))
    }

    fn holding(self) -> Holding {
        let number = u64::from(self.words.releases.load(Ordering::SeqCst));
        Holding { holder: self.words.holder.load(Ordering::SeqCst), number }
    }
}

/// For how long to wait for a living holder.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Timeout {
    Never,
    /// For the same holder only so many sleeps.
    Sleeps(u32),
    At(Instant),
}

/// Until when a call may wait for others, or `None` for as long as it takes.
pub(crate) type Until = Option<Instant>;

/// The lock, held until dropped.
pub(crate) struct Held<'a> {
    words: &'a LockWords,
    me: Owner,
}

/// Takes the lock, waiting for a living holder.
pub(crate) fn acquire<'a>(
    lock: impl Into<Watched<'a>>,
    me: Owner,
    who: &impl Liveness,
) -> Held<'a> {
    let lock = lock.into();
    loop {
        if let Some(held) = acquire_within(lock, me, who, Timeout::Never) {
            return held;
        }
    }
}

/// Takes the lock, waiting for a living holder until `timeout` ends.
pub(crate) fn acquire_within<'a>(
    lock: impl Into<Watched<'a>>,
    me: Owner,
    who: &impl Liveness,
    timeout: Timeout,
) -> Option<Held<'a>> {
    match acquire_unless(lock, me, who, timeout, || false) {
        Outcome::Held(held) => Some(held),
        Outcome::Needless | Outcome::TimedOut => None,
    }
}

/// The result of waiting for a lock.
pub(crate) enum Outcome<'a> {
    Held(Held<'a>),
    /// The holder has done meanwhile what the lock was wanted for.
    Needless,
    TimedOut,
}

/// Takes the lock, unless `is_needless` becomes true: a waiter asks that before each try, so
/// no one queues for a lock that it has no use for any more.
pub(crate) fn acquire_unless<'a>(
    lock: impl Into<Watched<'a>>,
    me: Owner,
    who: &impl Liveness,
    timeout: Timeout,
    is_needless: impl Fn() -> bool,
) -> Outcome<'a> {
    let lock = lock.into();
    let words = lock.words;
    let mut sleeps = 0;
    loop {
        for _ in 0..SPINS {
            if is_needless() {
                return Outcome::Needless;
            }
            if let Some(held) = take(words, 0, me) {
                return Outcome::Held(held);
            }
            primitive::spin_loop();
        }
        // Before `contended`: a release takes that back first and counts then, so either this count
        // is old and the sleep ends at once, or the next release sees `contended`.
        let releases = words.releases.load(Ordering::SeqCst);
        words.contended.store(1, Ordering::SeqCst);
        let holder = words.holder.load(Ordering::SeqCst);
        if holder == 0 {
            continue;
        }
        primitive::wait(&words.releases, releases, LOOK_AGAIN);
        // Still the same after all that time: perhaps it will never release the lock.
        let is_stuck = words.holder.load(Ordering::Relaxed) == holder
            && words.releases.load(Ordering::Relaxed) == releases;
        sleeps = if is_stuck { sleeps + 1 } else { 0 };
        if is_stuck {
            lock.noticed.note(Holding { holder, number: u64::from(releases) });
            if !who.is_alive(Owner::from_word(holder))
                && let Some(held) = take(words, holder, me)
            {
                return Outcome::Held(held);
            }
        }
        if timeout.ends(sleeps) {
            return Outcome::TimedOut;
        }
    }
}

impl From<Until> for Timeout {
    fn from(until: Until) -> Timeout {
        until.map_or(Timeout::Never, Timeout::At)
    }
}

impl Timeout {
    fn ends(self, sleeps: u32) -> bool {
        match self {
            Timeout::Never => false,
            Timeout::Sleeps(most) => sleeps >= most,
            Timeout::At(end) => Instant::now() >= end,
        }
    }
}

/// Takes the lock if it is free.
pub(crate) fn try_acquire(words: &LockWords, me: Owner) -> Option<Held<'_>> {
    take(words, 0, me)
}

/// Takes the lock from `holder`, which is none or dead.
fn take(words: &LockWords, holder: u64, me: Owner) -> Option<Held<'_>> {
    // An owner is never reused (its generation grows), so the exchange cannot take the lock from
    // a new life of the dead holder's place.
    let is_same = words.holder.load(Ordering::Relaxed) == holder;
    let me_word = me.to_word();
    let exchange =
        || words.holder.compare_exchange(holder, me_word, Ordering::Acquire, Ordering::Relaxed);
    // Made only if it is ours: dropping one releases the lock.
    (is_same && exchange().is_ok()).then(|| Held { words, me })
}

impl Held<'_> {
    /// Wakes all waiters, because their condition may be true already: see [`acquire_unless`]. The
    /// lock is held on. A waiter that is missed is woken by the release.
    pub(crate) fn wake_waiters(&self) {
        if self.words.contended.load(Ordering::SeqCst) != 0 {
            self.words.contended.store(0, Ordering::SeqCst);
            self.words.releases.fetch_add(1, Ordering::SeqCst);
            primitive::wake_all(&self.words.releases);
        }
    }
}

impl LockWords {
    /// A hint whether the lock is held.
    #[inline]
    pub(crate) fn is_held(&self) -> bool {
        self.holder.load(Ordering::Relaxed) != 0
    }

    /// Counts an end of a hold without a wake-up; only the holder does.
    #[inline]
    pub(crate) fn count_release(&self) {
        let releases = self.releases.load(Ordering::Relaxed);
        self.releases.store(releases.wrapping_add(1), Ordering::Relaxed);
    }

    /// The holder, and how often the lock was released: a thread that sees the same twice, and
    /// holds nothing, waits for one hold.
    pub(crate) fn hold(&self) -> (u64, u32) {
        (self.holder.load(Ordering::Relaxed), self.releases.load(Ordering::Relaxed))
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let me = self.me.to_word();
        // An exchange, not a store: after a scribble on the word the lock may be another process's.
        let _ = self.words.holder.compare_exchange(me, 0, Ordering::SeqCst, Ordering::Relaxed);
        self.wake_waiters();
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::thread;

    use super::*;

    struct Everyone;

    impl Liveness for Everyone {
        fn is_alive(&self, _: Owner) -> bool {
            true
        }
    }

    #[test]
    fn who_waits_for_what_the_holder_makes_is_woken_while_the_lock_is_held() {
        let words = Alone::<WatchedLockWords>::default();
        let LockWords { holder, releases, contended } = &words.lock;
        let is_there = AtomicBool::new(false);
        let held = acquire(&words, Owner::from_word(1), &Everyone);
        let wait = || {
            let is_needless = || is_there.load(Ordering::SeqCst);
            let other = Owner::from_word(2);
            let outcome = acquire_unless(&words, other, &Everyone, Timeout::Never, is_needless);
            assert!(matches!(outcome, Outcome::Needless));
            assert_eq!(holder.load(Ordering::SeqCst), 1, "the lock was let go of");
        };
        thread::scope(|scope| {
            let waiter = scope.spawn(wait);
            while contended.load(Ordering::SeqCst) == 0 {
                thread::yield_now();
            }
            is_there.store(true, Ordering::SeqCst);
            held.wake_waiters();
            assert_eq!(releases.load(Ordering::SeqCst), 1, "nobody was woken");
            waiter.join().unwrap();
        });
    }
}
