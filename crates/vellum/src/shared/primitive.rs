//! The atomics of the protocol: the processor's, or a model checker's.

#[cfg(not(shuttle))]
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

#[cfg(shuttle)]
pub(crate) use shuttle::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use std::time::Duration;

/// Sleeps while `word` holds `seen`, at most for `timeout`. Under the model checker: lets others
/// go on.
pub(crate) fn wait(word: &AtomicU32, seen: u32, timeout: Duration) {
    #[cfg(not(shuttle))]
    crate::sys::wait::wait(word, seen, timeout);
    #[cfg(shuttle)]
    {
        let _ = (word, seen, timeout);
        shuttle::thread::yield_now();
    }
}

/// Wakes everybody who waits on `word`.
pub(crate) fn wake_all(word: &AtomicU32) {
    #[cfg(not(shuttle))]
    crate::sys::wait::wake_all(word);
    #[cfg(shuttle)]
    let _ = word;
}
