//! Waiting until others have made something durable.
//!
//! Commits sleep on the words of their groups, and one of them is woken to lead the next. A process
//! that only waits must not take that wake-up away, so it sleeps on an event count of its own. It
//! is rung after `durable` was raised, and after the log was poisoned.
//!
//! **If the process dies here**: between raising `durable` and ringing, a sleeper sees it after its
//! next look by itself. A sleeper holds nothing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::log::open::reading;
use crate::log::state::core::Core;
use crate::log::state::{poison, wait};
use crate::shared::{commit, event_count, tail_word};
use crate::{Error, ErrorKind, Lsn, Result};

/// How long to sleep, in case a process died between raising `durable` and ringing.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// The same for one that may not note that it waits.
const LOOK_AGAIN_UNARMED: Duration = Duration::from_millis(20);

/// Waits until the record at `lsn` is durable, for `timeout` at most. Leads no commit.
pub(crate) fn wait_durable(core: &Arc<Core>, lsn: Lsn, timeout: Option<Duration>) -> Result<()> {
    let until = timeout.and_then(wait::after);
    let mut core = Arc::clone(core);
    loop {
        // Read first: a record that was durable before the failure is no failure.
        let poison = poison::check(&core);
        if commit::durable(&core.words().commits) > lsn {
            return Ok(());
        }
        poison?;
        check_exists(&core, lsn)?;
        if wait::is_over(until) {
            return Err(wait::not_durable_yet(&core, lsn));
        }
        sleep(&core, lsn, until.map(|end| end.saturating_duration_since(Instant::now())));
        core = reading::taken_up(&core).unwrap_or(core);
    }
}

/// Refuses a position that no record has, which may be used later for any.
fn check_exists(core: &Core, lsn: Lsn) -> Result<()> {
    let tail = tail_word::tail(core.words());
    if lsn < tail {
        return Ok(());
    }
    let message = format!("cannot wait for {lsn} to be durable: the log ends at {tail}");
    Err(Error::new(ErrorKind::OutOfRange, message).at_path(&core.files.dir).at_lsn(lsn))
}

/// Sleeps until more than the records up to `position` may be durable.
pub(crate) fn sleep(core: &Core, position: Lsn, remaining: Option<Duration>) {
    let words = &core.words().commits;
    let event_count = &words.ends.durable_count;
    let (rings, pause) = match core.writer {
        Some(_) => (event_count::arm(event_count, event_count::SLEEPER), LOOK_AGAIN),
        None => (event_count::listen(event_count), LOOK_AGAIN_UNARMED),
    };
    if commit::durable(words) > position || commit::is_poisoned(words) {
        return;
    }
    event_count::wait(event_count, rings, remaining.map_or(pause, |left| left.min(pause)));
}

/// Announces a poller that waits until more is durable; returns whether it will be woken.
pub(crate) fn prepare_poll(core: &Core) -> bool {
    event_count::arm(&core.words().commits.ends.durable_count, event_count::POLLER);
    true
}
