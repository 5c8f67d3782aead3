//! Named cursors: made, moved, set back, removed; and a trim in front of one that holds.

use std::sync::atomic::Ordering;

use vellum::{Cursor, CursorHold, Log, Lsn};

use super::check::Fault;
use super::scenario::Operation;
use super::victim::TRIM_TO;
use crate::trace::SharedPage;

/// The cursor of the victim.
const NAME: &str = "k";

impl Operation {
    /// Whether it is about a cursor.
    pub fn is_of_cursors(self) -> bool {
        use Operation::{CursorCommit, CursorMake, CursorRemove, CursorSet, TrimHeld};
        matches!(self, CursorMake | CursorCommit | CursorSet | CursorRemove | TrimHeld)
    }
}

/// Makes what the operation needs: a cursor that holds all records; for one that is set back, a
/// cursor at the end.
pub(crate) fn prepare(operation: Operation, log: &Log) -> vellum::Result<()> {
    if operation == Operation::CursorMake {
        return Ok(());
    }
    let cursor = log.cursor(NAME, Lsn::ZERO)?;
    cursor.hold(CursorHold::new())?;
    match operation {
        Operation::CursorSet => cursor.commit(log.published()),
        _ => Ok(()),
    }
}

/// The cursor that was prepared.
pub(crate) fn prepared(operation: Operation, log: &Log) -> vellum::Result<Option<Cursor>> {
    let is_there = operation.is_of_cursors() && operation != Operation::CursorMake;
    is_there.then(|| log.cursor(NAME, Lsn::ZERO)).transpose()
}

/// The operation under test.
pub(crate) fn operate(
    operation: Operation,
    log: &Log,
    cursor: Option<&Cursor>,
    target: Lsn,
) -> vellum::Result<()> {
    let Some(cursor) = cursor else { return log.cursor(NAME, target).map(drop) };
    match operation {
        Operation::CursorCommit => cursor.commit(target),
        Operation::CursorSet => cursor.set(Lsn::ZERO),
        Operation::CursorRemove => cursor.remove(),
        _ => log.trim(target).map(drop),
    }
}

/// The cursor is as it was or as it was to be, and the latter once that was acknowledged; nothing
/// in front of it was removed; and others continue with it.
pub(crate) fn check(
    operation: Operation,
    log: &Log,
    page: &SharedPage,
    is_done: bool,
) -> Result<(), Fault> {
    let fault = |error: vellum::Error| format!("the cursors cannot be used: {error}");
    let target = Lsn::new(page.word(TRIM_TO).load(Ordering::SeqCst));
    let (begin, end) = (log.begin(), log.published());
    let cursors = log.cursors().map_err(fault)?;
    let found = cursors.first().map(|cursor| cursor.lsn);
    let is_good = match (operation, found) {
        (Operation::CursorMake, found) => found == Some(target) || !is_done && found.is_none(),
        (Operation::CursorRemove, found) => found.is_none() || !is_done && found == Some(begin),
        (Operation::CursorCommit, Some(lsn)) => lsn == target || !is_done && lsn == begin,
        (Operation::CursorSet, Some(lsn)) => lsn == begin || !is_done && lsn > target,
        (_, Some(lsn)) => lsn == begin,
        (_, None) => false,
    };
    if !is_good || found.is_some_and(|lsn| lsn < begin || lsn > end) {
        return Err(format!("the cursor is at {found:?}, with {target}, {begin} and {end}"));
    }
    if cursors.first().is_some_and(|cursor| cursor.is_owned) {
        return Err("the dead own a cursor".into());
    }
    let is_held = cursors.first().is_some_and(|cursor| cursor.hold.is_some());
    if found.is_some() && operation != Operation::CursorMake && !is_held {
        return Err("the cursor holds nothing any more".into());
    }
    let another = log.cursor("another", Lsn::ZERO).map_err(fault)?;
    another.own().and_then(|()| another.commit(end)).map_err(fault)?;
    another.remove().map_err(fault)
}
