//! Waiting for others no longer than the caller wants, and naming the process that was waited for
//! in vain.
//!
//! A call that gives up has reserved nothing and holds nothing. It leaves its work as a dead
//! process would. Another process finishes it.

use std::time::{Duration, Instant};

use crate::log::state::attachment::Attachment;
use crate::log::state::core::Core;
use crate::log::state::holds::{self, Hold, HoldKind};
use crate::shared::lock::Until;
use crate::shared::words::EventCountWords;
use crate::shared::{event_count, tail_word};
use crate::{Error, ErrorKind, Lsn, Result};

/// How long to sleep on an event count, in case a process died between a change and ringing.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// The same for a handle that may not note that it waits.
pub(crate) const LOOK_AGAIN_UNARMED: Duration = Duration::from_millis(20);

/// `timeout` from now on; one beyond the clock's end is none.
pub(crate) fn after(timeout: Duration) -> Until {
    Instant::now().checked_add(timeout)
}

/// Whether it is time to give up.
pub(crate) fn is_over(until: Until) -> bool {
    until.is_some_and(|end| Instant::now() >= end)
}

/// A sleep of `pause`, or of the time that is left where that is less.
pub(crate) fn nap(pause: Duration, until: Until) -> Duration {
    until.map_or(pause, |end| end.saturating_duration_since(Instant::now()).min(pause))
}

/// Sleeps until `event_count` rings, unless `is_there` says that nothing is to be waited for. It is
/// queried once the event count is armed, so no ring is missed.
pub(crate) fn sleep(
    core: &Core,
    event_count: &EventCountWords,
    until: Until,
    is_there: impl FnOnce() -> bool,
) {
    let (rings, pause) = match core.writer {
        Some(_) => (event_count::arm(event_count, event_count::SLEEPER), LOOK_AGAIN),
        None => (event_count::listen(event_count), LOOK_AGAIN_UNARMED),
    };
    if !is_there() {
        event_count::wait(event_count, rings, nap(pause, until));
    }
}

/// Until when a wait that begins now may last.
pub(crate) fn deadline(core: &Core) -> Until {
    core.choices.timeout.and_then(after)
}

/// Refuses to wait until everything before `end` is published, if the calling thread itself holds a
/// reservation there.
pub(crate) fn check_not_for_self(core: &Core, own: &Attachment, end: Lsn) -> Result<()> {
    let Some(start) = own.reserved.by_this_thread_before(end) else { return Ok(()) };
    let message = format!(
        "this thread has reserved a record at {start}, and would wait for itself; publish or \
         abandon it first"
    );
    Err(Error::new(ErrorKind::Busy, message).at_path(&core.files.dir).at_lsn(start))
}

/// The error of a call that has waited in vain for everything before `end` to be durable.
#[cold]
pub(crate) fn commit_timed_out(core: &Core, end: Lsn) -> Error {
    let group = || holds::groups(core).min_by_key(|hold| hold.range.map(|r| r.first_lsn));
    let append = || {
        let is_waited_for = tail_word::published(core.words()) < end;
        is_waited_for.then(|| holds::oldest_append(core)).flatten()
    };
    let lock = || holds::of_lock(core, HoldKind::Commit);
    timed_out(core, group().or_else(append).or_else(lock))
}

/// The error of a call that has waited in vain for others to commit the record at `lsn`.
#[cold]
pub(crate) fn not_durable_yet(core: &Core, lsn: Lsn) -> Error {
    let group = holds::groups(core).min_by_key(|hold| hold.range.map(|r| r.first_lsn));
    let blame = group
        .map_or_else(|| format!("nobody has committed position {lsn}"), |hold| hold.to_string());
    gave_up(core, &blame)
}

/// The error of a call that has waited in vain for `hold`.
#[cold]
pub(crate) fn timed_out(core: &Core, hold: Option<Hold>) -> Error {
    let blame = hold.map_or_else(
        || "others came first, one after the other".to_string(),
        |hold| hold.to_string(),
    );
    gave_up(core, &blame)
}

#[cold]
fn gave_up(core: &Core, blame: &str) -> Error {
    let message = format!("gave up waiting: {blame}");
    Error::new(ErrorKind::TimedOut, message).at_path(&core.files.dir)
}
