//! Waiting until others have made something durable.
//!
//! Commits sleep on the words of their groups, and one of them is woken to lead the next. A process
//! that only waits must not take that wake-up away, so it sleeps on an event count of its own. It
//! is rung after `durable` was raised, and after the log was poisoned.
//!
//! **If the process dies here**: between raising `durable` and ringing, a sleeper sees it after its
//! next look by itself. A sleeper holds nothing.

use std::sync::Arc;
use std::time::Duration;

use crate::log::open::reading;
use crate::log::state::core::Core;
use crate::log::state::{poison, wait};
use crate::shared::lock::Until;
use crate::shared::{commit, event_count, tail_word};
use crate::{Error, ErrorKind, Lsn, Result};

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
        sleep(&core, lsn, until);
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
pub(crate) fn sleep(core: &Core, position: Lsn, until: Until) {
    let words = &core.words().commits;
    wait::sleep(core, &words.ends.durable_count, until, || {
        commit::durable(words) > position || commit::is_poisoned(words)
    });
}

/// Announces a poller that waits until more is durable; returns whether it will be woken.
pub(crate) fn prepare_poll(core: &Core) -> bool {
    event_count::arm(&core.words().commits.ends.durable_count, event_count::POLLER);
    true
}
