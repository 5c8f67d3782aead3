//! The atomics of the protocol: the processor's, or a model checker's.

#[cfg(not(shuttle))]
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, compiler_fence, fence};

#[cfg(shuttle)]
pub(crate) use super::model_atomics::{AtomicU32, AtomicU64, fence};
#[cfg(shuttle)]
pub(crate) use std::sync::atomic::{Ordering, compiler_fence};

use std::time::Duration;

/// Sleeps while `word` holds `seen`, at most for `timeout`. Under the model checker the timeout
/// passes when nobody else can go on.
pub(crate) fn wait(word: &AtomicU32, seen: u32, timeout: Duration) {
    #[cfg(not(shuttle))]
    crate::sys::wait::wait(word, seen, timeout);
    #[cfg(shuttle)]
    {
        let _ = timeout;
        super::model_atomics::wait(word, seen);
    }
}

/// Wakes everybody who waits on `word`.
pub(crate) fn wake_all(word: &AtomicU32) {
    #[cfg(not(shuttle))]
    crate::sys::wait::wake_all(word);
    #[cfg(shuttle)]
    super::model_atomics::wake_all(word);
}

/// Wakes one of those who wait on `word`.
pub(crate) fn wake_one(word: &AtomicU32) {
    #[cfg(not(shuttle))]
    crate::sys::wait::wake_one(word);
    #[cfg(shuttle)]
    super::model_atomics::wake_one(word);
}

/// Makes every registered process pass a full barrier; false where that cannot be had.
pub(crate) fn make_others_fence() -> bool {
    #[cfg(not(shuttle))]
    return crate::sys::barrier::pass_all();
    #[cfg(shuttle)]
    true
}

/// A moment's pause. Under the model checker a loop of them is over at once.
pub(crate) fn spin_loop() {
    #[cfg(not(shuttle))]
    std::hint::spin_loop();
    #[cfg(shuttle)]
    super::model_atomics::spin_loop();
}
