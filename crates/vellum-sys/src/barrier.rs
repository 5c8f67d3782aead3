//! A memory barrier that one process makes all others pass, so that they need none of their own.
//!
//! `membarrier(2)` with `GLOBAL_EXPEDITED` interrupts the processors that run threads of processes
//! which have registered for it. A writer that is registered looks at a flag after each record
//! without a fence; the reader that raises the flag, which is rare, pays for both.

use rustix::thread::{MembarrierCommand, membarrier};

/// Registers the calling process; returns whether the kernel offers this.
pub fn register() -> bool {
    membarrier(MembarrierCommand::RegisterGlobalExpedited).is_ok()
}

/// Returns when every running thread of every registered process has passed a full barrier;
/// false where the kernel does not offer this.
pub fn pass_all() -> bool {
    membarrier(MembarrierCommand::GlobalExpedited).is_ok()
}
