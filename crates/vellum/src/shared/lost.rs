//! The words of a process that has lost the control file.
//!
//! Where storage fails under the control file (`sys::guard`), the process continues with a copy
//! that no other process sees. Nothing in it may be waited for, because no process will ever change
//! it, and nothing may be done because of it. So the copy is poisoned, its locks are free, and
//! nothing in it is in flight: a waiter continues, and learns of it ([`Region::is_lost`]).
//!
//! The others see the words as they were at that moment. They wait for the locks of this process as
//! for those of a stopped one, until none of its threads is in the middle of a call. Then the
//! process drops its liveness lock, and the others treat it as dead (`log::state::busy`).
//!
//! [`Region::is_lost`]: super::region::Region::is_lost

use super::commit::{self, Failure, Operation};
use super::primitive::Ordering;
use super::words::Words;
use crate::Lsn;

/// `EIO`.
const ERRNO: i32 = 5;

/// Makes a copy of the words one without waiters. Stores atomics and does nothing else: it runs in
/// a signal handler.
pub(super) fn abandon(words: &Words) {
    commit::remember(
        &words.commits,
        Failure { errno: ERRNO, segment: Lsn::ZERO, operation: Operation::Control },
    );
    let locks = [&words.prepare.lock, &words.repair.lock, &words.commits.lock.lock];
    for lock in locks.into_iter().chain([&words.files.write_lock.lock, &words.full.lock]) {
        lock.holder.store(0, Ordering::SeqCst);
    }
    for slot in &words.slots {
        slot.start.store(0, Ordering::SeqCst);
    }
}
