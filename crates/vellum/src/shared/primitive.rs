//! The atomics of the protocol: the processor's, or a model checker's. `shuttle` has every order of
//! steps and death at any of them, `loom` the weak memory of C11.

#[cfg(not(any(all(loom, test), shuttle)))]
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, compiler_fence, fence};

#[cfg(shuttle)]
pub(crate) use super::model_atomics::{self as model, AtomicU32, AtomicU64, fence};
#[cfg(all(loom, test))]
pub(crate) use super::weak_atomics::{
    self as model, AtomicBool, AtomicU32, AtomicU64, AtomicU64 as HintU64, fence,
    fence as compiler_fence,
};
#[cfg(shuttle)]
pub(crate) use std::sync::atomic::compiler_fence;

/// Words that the protocol does not depend on, and a flag within one process: no steps of the model
/// that has deaths.
#[cfg(not(all(loom, test)))]
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64 as HintU64};

pub(crate) use std::sync::atomic::Ordering;

use std::time::Duration;

/// Sleeps while `word` holds `seen`, at most for `timeout`. Under the model checker the timeout
/// passes when no other process can continue.
pub(crate) fn wait(word: &AtomicU32, seen: u32, timeout: Duration) {
    #[cfg(not(any(all(loom, test), shuttle)))]
    crate::sys::wait::wait(word, seen, timeout);
    #[cfg(any(all(loom, test), shuttle))]
    {
        let _ = timeout;
        model::wait(word, seen);
    }
}

/// Wakes all waiters of `word`.
pub(crate) fn wake_all(word: &AtomicU32) {
    #[cfg(not(any(all(loom, test), shuttle)))]
    crate::sys::wait::wake_all(word);
    #[cfg(any(all(loom, test), shuttle))]
    model::wake_all(word);
}

/// Wakes one waiter of `word`.
pub(crate) fn wake_one(word: &AtomicU32) {
    #[cfg(not(any(all(loom, test), shuttle)))]
    crate::sys::wait::wake_one(word);
    #[cfg(any(all(loom, test), shuttle))]
    model::wake_one(word);
}

/// Makes every registered process pass a full barrier; false where that cannot be had.
pub(crate) fn make_others_fence() -> bool {
    #[cfg(not(any(all(loom, test), shuttle)))]
    return crate::sys::barrier::pass_all();
    #[cfg(any(all(loom, test), shuttle))]
    true
}

/// A moment's pause. Under the model checker a loop of them is over at once.
pub(crate) fn spin_loop() {
    #[cfg(not(any(all(loom, test), shuttle)))]
    std::hint::spin_loop();
    #[cfg(any(all(loom, test), shuttle))]
    model::spin_loop();
}
