//! Making records survive a power cut.

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::time::Duration;

use vellum::Lsn;

use crate::boundary::{give, guard, guard_or, required, timeout};
use crate::log::vellum_log;
use crate::status::vellum_status::VELLUM_OK;

/// Makes the record at `lsn`, and everything before it, survive a power cut.
///
/// Sleeps for about one write of the device, which all threads of all processes share, and until
/// the appends in front of `lsn` that are in progress are done.
///
/// Errors: VELLUM_OUT_OF_RANGE for a position beyond the end; VELLUM_BUSY while the calling thread
/// holds a reservation before `lsn`, because it would wait for itself; VELLUM_POISONED after a
/// failed write or sync, for every caller in every process, because nothing is tried again.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_commit(log: Option<&vellum_log>, lsn: u64) -> c_int {
    guard(|| {
        required(log, "log")?.log.commit(Lsn::new(lsn))?;
        Ok(VELLUM_OK)
    })
}

/// As vellum_commit, but waits for others no longer than `timeout_us` microseconds, whatever
/// vellum_options.timeout_us says: then VELLUM_TIMED_OUT, and vellum_last_error_message names the
/// process that was waited for, its hold and its state. The record is in the log as before.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_commit_within(
    log: Option<&vellum_log>,
    lsn: u64,
    timeout_us: u64,
) -> c_int {
    guard(|| {
        let timeout = Duration::from_micros(timeout_us);
        required(log, "log")?.log.commit_within(Lsn::new(lsn), timeout)?;
        Ok(VELLUM_OK)
    })
}

/// Waits until the record at `lsn`, and everything before it, survives a power cut because some
/// process has committed it, up to `timeout_ns` nanoseconds; -1 is for ever. Commits nothing
/// itself.
///
/// Errors: VELLUM_TIMED_OUT; VELLUM_OUT_OF_RANGE for a position beyond the end; VELLUM_POISONED
/// when it can be committed no more.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_wait_durable(
    log: Option<&vellum_log>,
    lsn: u64,
    timeout_ns: i64,
) -> c_int {
    guard(|| {
        required(log, "log")?.log.wait_durable(Lsn::new(lsn), timeout(timeout_ns))?;
        Ok(VELLUM_OK)
    })
}

/// As vellum_commit, and then waits until the record is also in the store that the log is shipped
/// to; for both no longer than vellum_options.timeout_us. Committed records are durable here also
/// after one of these errors, and are shipped later if a process ships.
///
/// Errors: VELLUM_NO_SHIPPER at once where no process ships the log; VELLUM_FENCED where another
/// machine or copy has taken over; VELLUM_TIMED_OUT; otherwise as for vellum_commit.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_commit_remote(log: Option<&vellum_log>, lsn: u64) -> c_int {
    guard(|| {
        required(log, "log")?.log.ship().commit(Lsn::new(lsn))?;
        Ok(VELLUM_OK)
    })
}

/// Waits until the record at `lsn`, and everything before it, is where the log is shipped to, up to
/// `timeout_ns` nanoseconds; -1 is for ever. Commits nothing itself.
///
/// Errors: as for vellum_commit_remote; VELLUM_OUT_OF_RANGE for a position beyond the end.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_wait_shipped(
    log: Option<&vellum_log>,
    lsn: u64,
    timeout_ns: i64,
) -> c_int {
    guard(|| {
        required(log, "log")?.log.ship().wait(Lsn::new(lsn), timeout(timeout_ns))?;
        Ok(VELLUM_OK)
    })
}

/// End of the shipped records; 0 where no shipper has reported it since the last boot.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_shipped(log: Option<&vellum_log>) -> u64 {
    guard_or(0, || Ok(required(log, "log")?.log.ship().end().get()))
}

/// Commits every record whose append had returned, in any thread of any process, when this was
/// called; `*durable` is the durable end. `durable` may be NULL. A record ends there, so a reader
/// and vellum_trim take it. It waits for appends that are in progress in front of these records.
/// Errors and cost as for vellum_commit.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_sync(
    log: Option<&vellum_log>,
    durable: Option<&mut MaybeUninit<u64>>,
) -> c_int {
    guard(|| {
        let end = required(log, "log")?.log.sync()?;
        give(durable, end.get());
        Ok(VELLUM_OK)
    })
}

/// Stores `lsn` with the log as the position from which its user recovers, and commits.
///
/// Framed logs only. On return the mark and every record whose append had returned before survive a
/// power cut.
///
/// Errors: VELLUM_OUT_OF_RANGE for a position outside of the log, VELLUM_UNSUPPORTED in a text log;
/// otherwise as for vellum_commit.
///
/// Cost: one write of the device, or two. Not for an event loop; any thread may call it.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_set_checkpoint(log: Option<&vellum_log>, lsn: u64) -> c_int {
    guard(|| {
        required(log, "log")?.log.checkpoint().set(Lsn::new(lsn))?;
        Ok(VELLUM_OK)
    })
}

/// The position stored last by vellum_set_checkpoint, or 0.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_checkpoint(log: Option<&vellum_log>) -> u64 {
    guard_or(0, || Ok(required(log, "log")?.log.checkpoint().lsn().get()))
}
