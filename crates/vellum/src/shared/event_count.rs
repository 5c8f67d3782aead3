//! How a writer wakes waiting readers.
//!
//! A reader that has seen everything prepares to wait, looks once more, and sleeps on `rings`. A
//! writer that has published looks whether the event count is armed; the first to see it disarms
//! it, rings and wakes all readers. So a log without followers costs its writers one load per
//! record, and a reader that dies while it sleeps costs one wake, once.
//!
//! There is a full barrier between publishing and looking, or the two could miss each other. It is
//! the reader that makes the writers pass it (`sys::barrier`); writers that the kernel does not let
//! register for that bring their own.
//!
//! A reader that polls a descriptor cannot sleep on `rings`. It arms the event count as a poller,
//! and the writer that disarms it learns of that: the next step is in `log::state::wakeup`.
//!
//! A reader that may not write to the control file cannot note that it waits; it sleeps for a short
//! while instead and is woken early where another reader has armed it.

use std::time::Duration;

use super::primitive::{self, Ordering, fence};
use super::words::EventCountWords;

/// A bit of `armed`: a waiter sleeps on `rings`.
pub(crate) const SLEEPER: u32 = 1;
/// A bit of `armed`: a waiter polls a descriptor.
pub(crate) const POLLER: u32 = 2;

/// Announces a reader that is about to sleep; returns the value to pass to [`wait`], and whether
/// the event count will ring for everything that is not published yet.
///
/// The caller looks for news after this and before it waits.
pub(crate) fn prepare_wait(event_count: &EventCountWords) -> (u32, bool) {
    (arm(event_count, SLEEPER), primitive::make_others_fence())
}

/// The same for a poller; returns whether the event count will ring for everything.
pub(crate) fn prepare_poll(event_count: &EventCountWords) -> bool {
    arm(event_count, POLLER);
    primitive::make_others_fence()
}

/// As [`prepare_wait`], for an event count whose writers all bring a barrier of their own.
pub(crate) fn arm(event_count: &EventCountWords, who: u32) -> u32 {
    let rings = event_count.rings.load(Ordering::Acquire);
    event_count.armed.fetch_or(who, Ordering::SeqCst);
    // Pairs with the fence in `notify`: either the writer sees the event count armed, or this
    // reader's next look sees the published end of the writer.
    fence(Ordering::SeqCst);
    rings
}

/// The value to pass to [`wait`] where the event count cannot be armed.
pub(crate) fn listen(event_count: &EventCountWords) -> u32 {
    event_count.rings.load(Ordering::Acquire)
}

/// Sleeps until the event count rings, at most for `timeout`.
pub(crate) fn wait(event_count: &EventCountWords, rings: u32, timeout: Duration) {
    primitive::wait(&event_count.rings, rings, timeout);
}

/// Wakes the sleepers; to be called after publishing. `is_registered` says that the caller's
/// process passes the barriers of `sys::barrier`. Returns whether a poller waits too, which the
/// caller wakes.
#[inline]
pub(crate) fn notify(event_count: &EventCountWords, is_registered: bool) -> bool {
    if is_registered {
        primitive::compiler_fence(Ordering::SeqCst);
    } else {
        fence(Ordering::SeqCst);
    }
    event_count.armed.load(Ordering::Relaxed) != 0 && notify_armed(event_count)
}

#[cold]
fn notify_armed(event_count: &EventCountWords) -> bool {
    let armed = event_count.armed.swap(0, Ordering::SeqCst);
    if armed != 0 {
        event_count.rings.fetch_add(1, Ordering::SeqCst);
        primitive::wake_all(&event_count.rings);
    }
    armed & POLLER != 0
}
