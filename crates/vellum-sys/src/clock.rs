//! The time: to the second for people and for names of files, finely for pauses.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, Timespec, clock_gettime};

/// Seconds since 1970-01-01 00:00:00 UTC, off by a few milliseconds: costs no system call.
#[inline]
pub fn seconds() -> u64 {
    u64::try_from(clock_gettime(ClockId::RealtimeCoarse).tv_sec).unwrap_or(0)
}

/// 2025-01-01 00:00:00 UTC: no log is older.
const FIRST_SECONDS: u64 = 1_735_689_600;

/// Whether a clock that was right can have told `time`, as far as one knows `now`: the clock of a
/// machine without a battery starts in 1970, or where its vendor has set it.
pub fn may_be_right(time: u64, now: u64) -> bool {
    (FIRST_SECONDS..=now).contains(&time)
}

/// The moment so many seconds after 1970-01-01 00:00:00 UTC; that one where there is none.
pub fn time_of(seconds: u64) -> SystemTime {
    UNIX_EPOCH.checked_add(Duration::from_secs(seconds)).unwrap_or(UNIX_EPOCH)
}

/// Seconds of a clock that only moves forward, off by a few milliseconds: costs no system call.
#[inline]
pub fn uptime() -> u64 {
    u64::try_from(clock_gettime(ClockId::MonotonicCoarse).tv_sec).unwrap_or(0)
}

/// Nanoseconds since 1970-01-01 00:00:00 UTC, 0 for earlier times. Costs no system call where the
/// kernel maps its clock into processes.
#[inline]
pub fn nanos() -> u64 {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::Realtime);
    let (seconds, nanos) = (u64::try_from(tv_sec), u64::try_from(tv_nsec));
    seconds.unwrap_or(0).saturating_mul(1_000_000_000).saturating_add(nanos.unwrap_or(0))
}

/// Microseconds of a clock that is the same in every process of a boot, and only moves forward.
pub fn micros() -> u64 {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::Monotonic);
    let (seconds, nanos) = (u64::try_from(tv_sec), u64::try_from(tv_nsec));
    seconds.unwrap_or(0) * 1_000_000 + nanos.unwrap_or(0) / 1000
}
