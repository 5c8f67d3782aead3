//! Waiting until something is shipped.
//!
//! **If the process dies here**: a waiter holds nothing. If the shipper dies, waiters find its lock
//! free at their next check, and return.

use std::sync::Arc;

use crate::log::commit::Commit;
use crate::log::open::reading;
use crate::log::ship::election;
use crate::log::ship::state::{self, ShipStatus};
use crate::log::state::core::Core;
use crate::log::state::{place, poison, wait};
use crate::shared::lock::Until;
use crate::shared::{commit as commits, tail_word};
use crate::{Error, ErrorKind, Lsn, Result};

/// Makes the record at `lsn` durable here, and waits until it is shipped.
pub(crate) fn commit(core: &Arc<Core>, lsn: Lsn) -> Result<()> {
    let until = wait::deadline(core);
    Commit::of(core)
        .commit_until(Commit::of(core).end_of_commit(lsn)?, until)
        .map_err(|error| place::explain(core, error))?;
    until_shipped(core, lsn, until).map(drop)
}

/// Waits until the record at `lsn` is shipped.
pub(crate) fn until_shipped(core: &Arc<Core>, lsn: Lsn, until: Until) -> Result<Lsn> {
    let mut core = Arc::clone(core);
    loop {
        let words = &core.words().ship;
        // The shipped part ends at the end of a record, so one byte more is all of it.
        if words.whole() > lsn {
            return refuse_lost(&core, lsn).map(|()| words.shipped());
        }
        check_can_be_shipped(&core, lsn)?;
        if wait::is_over(until) {
            return Err(not_shipped_yet(&core, lsn));
        }
        sleep(&core, lsn, until);
        core = reading::taken_up(&core).unwrap_or(core);
    }
}

/// Sleeps until the record at `lsn` may be shipped, or will not be.
fn sleep(core: &Core, lsn: Lsn, until: Until) {
    let words = &core.words().ship;
    if core.writer.is_some() {
        words.want(Lsn::new(lsn.get().saturating_add(1)));
    }
    // After a pause the next look sees whether the shipper lives.
    wait::sleep(core, &words.shipped_count, until, || {
        words.whole() > lsn || state::status(words).0 == ShipStatus::Fenced
    });
}

/// Refuses to wait where nothing will come.
fn check_can_be_shipped(core: &Core, lsn: Lsn) -> Result<()> {
    let tail = tail_word::tail(core.words());
    if lsn >= tail {
        let what = format!("cannot wait for {lsn} to be shipped: the log ends at {tail}");
        return Err(not_shipped(core, ErrorKind::OutOfRange, what, lsn));
    }
    if commits::durable(&core.words().commits) <= lsn {
        // It never will be, and records that are not durable are not shipped.
        poison::check(core)?;
    }
    let status = state::status(&core.words().ship).0;
    if status == ShipStatus::Fenced {
        let what = format!(
            "position {lsn} is not shipped: another machine or copy has taken over what this \
             log is shipped to; what was committed is durable here alone"
        );
        return Err(not_shipped(core, ErrorKind::Fenced, what, lsn));
    }
    if !election::is_shipped_by_somebody(core) {
        let stopped = match status {
            ShipStatus::Diverged => ": the store holds something else at its positions",
            _ => "",
        };
        let what = format!(
            "position {lsn} is not shipped, and no process ships the log{stopped}; what was \
             committed is durable here alone"
        );
        return Err(not_shipped(core, ErrorKind::NoShipper, what, lsn));
    }
    Ok(())
}

/// Refuses a position that was removed before it was shipped.
fn refuse_lost(core: &Core, lsn: Lsn) -> Result<()> {
    match core.words().ship.gap() {
        Some((start, end)) if (start..end).contains(&lsn) => {
            let what = format!("position {lsn} was removed before it was shipped");
            Err(not_shipped(core, ErrorKind::Trimmed, what, lsn))
        }
        _ => Ok(()),
    }
}

#[cold]
fn not_shipped_yet(core: &Core, lsn: Lsn) -> Error {
    let words = &core.words().ship;
    let fault = state::status(words).1.map(|(fault, _)| fault.as_str());
    let why = fault.map_or_else(String::new, |fault| format!("; the store: {fault}"));
    let what = format!(
        "gave up waiting: position {lsn} is not shipped yet, {} is{why}; what was committed \
         is durable here, and is shipped later",
        words.shipped()
    );
    not_shipped(core, ErrorKind::TimedOut, what, lsn)
}

fn not_shipped(core: &Core, kind: ErrorKind, what: String, lsn: Lsn) -> Error {
    Error::new(kind, what).at_path(&core.files.dir).at_lsn(lsn)
}
