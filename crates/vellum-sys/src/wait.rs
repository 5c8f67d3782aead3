//! Sleeping on a word of shared memory, across processes.

use std::sync::atomic::AtomicU32;
use std::time::Duration;

use rustix::io::Errno;
use rustix::thread::futex::{self, Flags, Timespec};

/// Sleeps while `word` holds `seen`, until a wake, a signal or the timeout.
///
/// Read permission on the page is enough. Returning says nothing: the caller looks again.
pub fn wait(word: &AtomicU32, seen: u32, timeout: Duration) {
    let timeout = Timespec {
        tv_sec: timeout.as_secs().min(i64::MAX as u64) as i64,
        tv_nsec: i64::from(timeout.subsec_nanos()),
    };
    match futex::wait(word, Flags::empty(), seen, Some(&timeout)) {
        Ok(()) | Err(Errno::AGAIN | Errno::INTR | Errno::TIMEDOUT) => {}
        // A futex that cannot be waited on must not become a busy loop.
        Err(_) => std::thread::sleep(Duration::from_millis(1)),
    }
}

/// Wakes one sleeper of `word`, in any process.
pub fn wake_one(word: &AtomicU32) {
    // As in `wake_all`.
    let _ = futex::wake(word, Flags::empty(), 1);
}

/// Wakes all sleepers of `word`, in every process.
pub fn wake_all(word: &AtomicU32) {
    // Fails only for an address that is not mapped, which a reference cannot be.
    let _ = futex::wake(word, Flags::empty(), i32::MAX as u32);
}
