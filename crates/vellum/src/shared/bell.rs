//! How a writer wakes those who wait for records.
//!
//! A reader that has seen everything arms the bell, looks once more, and sleeps on `rings`. A
//! writer that has published looks whether the bell is armed; the first to see it disarms it, rings
//! and wakes everybody. So a log that nobody follows costs its writers one load per record, and a
//! reader that dies while it sleeps costs one wake, once.
//!
//! Between publishing and looking stands a full barrier, or the two could miss each other. It is
//! the reader that makes the writers pass it (`sys::barrier`); writers that the kernel does not let
//! register for that bring their own.
//!
//! A reader that may not write to the control file cannot arm the bell; it sleeps for a short
//! while instead and is woken early where somebody else has armed it.

use std::time::Duration;

use super::primitive::{self, Ordering, fence};
use super::words::BellWords;

/// Says that somebody is about to sleep; returns what to pass to [`wait`], and whether the bell
/// will ring for everything that is not published yet.
///
/// The caller looks for news after this and before it waits.
pub(crate) fn arm(bell: &BellWords) -> (u32, bool) {
    let rings = bell.rings.load(Ordering::Acquire);
    bell.armed.store(1, Ordering::SeqCst);
    // Pairs with the fence in `ring`: either the writer sees the bell armed, or this reader's next
    // look sees what the writer published.
    fence(Ordering::SeqCst);
    (rings, primitive::make_others_fence())
}

/// What to pass to [`wait`] where the bell cannot be armed.
pub(crate) fn listen(bell: &BellWords) -> u32 {
    bell.rings.load(Ordering::Acquire)
}

/// Sleeps until the bell rings, at most for `timeout`.
pub(crate) fn wait(bell: &BellWords, rings: u32, timeout: Duration) {
    primitive::wait(&bell.rings, rings, timeout);
}

/// Wakes whoever sleeps; to be called after publishing. `is_registered` says that the caller's
/// process passes the barriers of `sys::barrier`.
#[inline]
pub(crate) fn ring(bell: &BellWords, is_registered: bool) {
    if is_registered {
        primitive::compiler_fence(Ordering::SeqCst);
    } else {
        fence(Ordering::SeqCst);
    }
    if bell.armed.load(Ordering::Relaxed) != 0 {
        ring_armed(bell);
    }
}

#[cold]
fn ring_armed(bell: &BellWords) {
    if bell.armed.swap(0, Ordering::SeqCst) != 0 {
        bell.rings.fetch_add(1, Ordering::SeqCst);
        primitive::wake_all(&bell.rings);
    }
}
