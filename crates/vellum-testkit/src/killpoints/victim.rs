//! The code that runs in the process that will be killed.
//!
//! A victim stops itself three times: when it has prepared what the survivor may see first, when
//! the operation under test begins, and when it has been acknowledged. Between the last two its
//! tracer takes it instruction by instruction.

use std::io::Write;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use vellum::{ErrorKind, Layout, Log, Lsn, Reservation};

use super::call;
use super::cursors;
use super::full;
use super::scenario::{Case, Operation, Survivor};
use crate::payload::Payload;
use crate::trace::{self, Go, SharedPage, Stop};

/// Word of the shared page: 1 once the operation under test has been acknowledged.
pub const DONE: usize = 0;
/// Word of the shared page: the position to which the victim trims or truncates, or that it marks.
pub const TRIM_TO: usize = 1;
/// Word of the shared page: number of a process that outlives the victim and is to be ended.
const LINGERING: usize = 2;
/// Word of the shared page: 1 for a victim that is not killed, and continues when an operation
/// failed.
pub const STAYS: usize = 16;
/// Word of the shared page: 1 once it has been told that a write or sync failed for good.
pub const IS_POISONED: usize = 17;
/// Words of the shared page: the kind and the error number of the error that it was given.
pub const KIND: usize = 18;
/// See [`KIND`].
pub const ERRNO: usize = 19;
/// Seconds for which such a process lives if it is not ended.
const LINGER_SECONDS: u32 = 60;
/// Exit status of a child that has left a message.
const FAILED: i32 = 3;

/// The whole life of a victim, which may have a log from its parent; returns its exit status if it
/// is not killed.
pub fn live(case: &Case, dir: &Path, inherited: Option<&Log>, page: &SharedPage) -> i32 {
    report(page, || {
        trace::trace_me()?;
        match inherited {
            Some(log) => {
                let records = payloads(case);
                trace::mark();
                let answer = operate(case, log, &records, page);
                stay(case, dir, Some(log), answer, page)
            }
            None => act(case, dir, page),
        }
    })
}

/// Runs a child's work and leaves its error on the page.
pub fn report(page: &SharedPage, work: impl FnOnce() -> anyhow::Result<()>) -> i32 {
    match work() {
        Ok(()) => 0,
        Err(error) => {
            page.set_text(&format!("{error:#}"));
            FAILED
        }
    }
}

fn act(case: &Case, dir: &Path, page: &SharedPage) -> anyhow::Result<()> {
    let operation = case.operation;
    let log = if operation.opens_itself() { None } else { Some(case.options().open(dir)?) };
    for record in operation.records_before() {
        let Some(log) = &log else { break };
        let lsn = log.append(&record.bytes(case.layout))?;
        if operation.has_committed_before() {
            log.commit(lsn)?;
        }
    }
    if let (Some(log), Operation::Trim | Operation::Truncate | Operation::SetCheckpoint) =
        (&log, operation)
    {
        page.word(TRIM_TO).store(find_trim_target(log)?.get(), Ordering::SeqCst);
    }
    if let (Some(log), true) = (&log, operation.has_checkpoint_before())
        && case.layout == Layout::Framed
    {
        // The truncation drops its commit record.
        log.checkpoint().set(Lsn::new(page.word(TRIM_TO).load(Ordering::SeqCst)))?;
    }
    if let (Some(log), true) = (&log, operation.is_of_cursors()) {
        page.word(TRIM_TO).store(find_trim_target(log)?.get(), Ordering::SeqCst);
        cursors::prepare(operation, log)?;
    }
    trace::mark();
    if operation.hole_len().is_some() {
        leave_hole(case, dir, page)?;
    }
    if let Some(record) = operation.record_of_dead() {
        leave_half_a_commit(case, record, dir, page)?;
    }
    if let (Some(log), true) = (&log, operation.is_on_full_disk()) {
        full::prepare(case, log, dir)?;
    }
    let answer = match log {
        Some(log) if !operation.drops_log() => {
            let answer = operate(case, &log, &payloads(case), page);
            return stay(case, dir, Some(&log), answer, page);
        }
        None => operate_by_opening(case, dir, page),
        Some(log) => {
            if operation == Operation::DetachBesideChild {
                let child = trace::fork(|| trace::linger(LINGER_SECONDS))?;
                page.word(LINGERING).store(child as u64, Ordering::SeqCst);
            }
            trace::mark();
            drop(log);
            finish(Ok(()), page)
        }
    };
    stay(case, dir, None, answer, page)
}

/// The end of a victim that got an answer and lives on: it appends once more, and leaves.
fn stay(
    case: &Case,
    dir: &Path,
    log: Option<&Log>,
    answer: vellum::Result<()>,
    page: &SharedPage,
) -> anyhow::Result<()> {
    if page.word(STAYS).load(Ordering::SeqCst) == 0 {
        return answer.map_err(|error| anyhow::anyhow!("the operation failed: {error}"));
    }
    if let Err(error) = &answer {
        page.word(KIND).store(error.kind() as u64, Ordering::SeqCst);
        page.word(ERRNO).store(error.raw_os_error().unwrap_or(0) as u64, Ordering::SeqCst);
        page.set_text(&error.to_string());
        trace::mark();
    }
    match append_once_more(case, dir, log) {
        Err(error) if error.kind() == ErrorKind::Poisoned => {
            let is_known = page.word(IS_POISONED).load(Ordering::SeqCst) == 1;
            anyhow::ensure!(is_known, "only the one that failed knows of it: {error}");
            Ok(())
        }
        answer => answer.map_err(|error| anyhow::anyhow!("going on failed: {error}")),
    }
}

/// The record of a victim that lives on.
pub const LAST: Payload = Payload::new('v', 30, 100);

fn append_once_more(case: &Case, dir: &Path, log: Option<&Log>) -> vellum::Result<()> {
    let opened;
    let log = match log {
        Some(log) => log,
        None => {
            opened = case.options().open(dir)?;
            &opened
        }
    };
    let lsn = log.append(&LAST.bytes(case.layout))?;
    if case.is_durable() { log.commit(lsn) } else { Ok(()) }
}

/// Ends the process that a victim left behind, which its tracer has adopted.
pub fn end_lingering(page: &SharedPage) {
    let child = page.word(LINGERING).swap(0, Ordering::SeqCst);
    if child != 0 {
        // An error says that it has ended by itself.
        let _ = trace::kill_and_reap(child as trace::Pid);
    }
}

fn payloads(case: &Case) -> Vec<Vec<u8>> {
    case.operation.records().iter().map(|record| record.bytes(case.layout)).collect()
}

/// The position of the record to which the victim trims.
fn find_trim_target(log: &Log) -> anyhow::Result<Lsn> {
    let mut reader = log.reader(Lsn::ZERO)?;
    for _ in 0..Operation::TRIM_TO {
        reader.next()?;
    }
    // A text reader stays at the end of the segment until it looks for the next line.
    let record = reader.next()?;
    record.map(|record| record.lsn).ok_or_else(|| anyhow::anyhow!("the template is too short"))
}

/// Has another process reserve space, fill half of it, and die.
fn leave_hole(case: &Case, dir: &Path, page: &SharedPage) -> anyhow::Result<()> {
    let work = || {
        let log = case.options().open(dir)?;
        let len = case.operation.hole_len().expect("checked by the caller");
        let mut reservation = log.reserve(len)?;
        reservation.write_all(&vec![b'h'; len / 2])?;
        if let Some(record) = case.operation.record_behind_hole() {
            log.append(&record.bytes(case.layout))?;
        }
        trace::die()
    };
    let child = trace::fork(|| report(page, work))?;
    match trace::wait(child)? {
        Stop::Killed(_) => Ok(()),
        stop => anyhow::bail!("the process with the reservation ended by {stop:?}"),
    }
}

/// Has another process append a record and die when it is about to bring it to the device.
fn leave_half_a_commit(
    case: &Case,
    record: Payload,
    dir: &Path,
    page: &SharedPage,
) -> anyhow::Result<()> {
    let work = || {
        trace::trace_me()?;
        let log = case.options().open(dir)?;
        let lsn = log.append(&record.bytes(case.layout))?;
        trace::mark();
        log.commit(lsn)?;
        trace::die()
    };
    let child = trace::fork(|| report(page, work))?;
    let stop = trace::wait(child)?;
    anyhow::ensure!(stop == Stop::Mark, "the process that commits ended by {stop:?}");
    trace::set_options(child)?;
    let is_last_step = |child| {
        call::at_entry(child)
            .map(|call| call.is_some_and(|call| call.brings_to_the_device(case.is_staged())))
    };
    loop {
        trace::go(child, Go::ToSystemCall)?;
        match trace::wait(child)? {
            Stop::SystemCall if is_last_step(child)? => return Ok(trace::kill_and_reap(child)?),
            Stop::SystemCall | Stop::Harmless => {}
            Stop::Killed(_) => return Ok(()),
            stop => anyhow::bail!("the process that commits met {stop:?}"),
        }
    }
}

fn operate_by_opening(case: &Case, dir: &Path, page: &SharedPage) -> vellum::Result<()> {
    let options = case.victim_options();
    trace::mark();
    let log = options.open(dir);
    if case.operation == Operation::AttachDetach {
        return finish(log.map(drop), page);
    }
    finish(log, page)
}

fn operate(case: &Case, log: &Log, records: &[Vec<u8>], page: &SharedPage) -> vellum::Result<()> {
    let mut reader = log.reader(Lsn::ZERO)?;
    let trim_to = Lsn::new(page.word(TRIM_TO).load(Ordering::SeqCst));
    let cursor = cursors::prepared(case.operation, log)?;
    trace::mark();
    match case.operation {
        operation if operation.is_of_cursors() => {
            finish(cursors::operate(operation, log, cursor.as_ref(), trim_to), page)
        }
        Operation::Batch => {
            let mut batch = log.batch();
            for record in records {
                batch.push(record)?;
            }
            finish(batch.append(), page)
        }
        Operation::Publish => {
            let (first, second) = records[0].split_at(records[0].len() / 2);
            let mut reservation = log.reserve(records[0].len())?;
            fill(&mut reservation, first)?;
            fill(&mut reservation, second)?;
            finish(reservation.publish(), page)
        }
        Operation::Abandon => {
            let mut reservation = log.reserve(records[0].len())?;
            fill(&mut reservation, &records[0][..records[0].len() / 2])?;
            drop(reservation);
            finish(Ok(()), page)
        }
        Operation::Trim => finish(log.trim(trim_to), page),
        Operation::Truncate => finish(log.truncate(trim_to), page),
        Operation::Rotate => finish(log.rotate().and_then(|()| log.append(&records[0])), page),
        Operation::SetCheckpoint => match log.checkpoint().set(trim_to) {
            // Another process has trimmed that away before.
            Err(error)
                if error.kind() == ErrorKind::OutOfRange && case.survivor == Survivor::Trimming =>
            {
                trace::mark();
                Ok(())
            }
            answer => finish(answer, page),
        },
        operation if operation.drops() => finish(drop_one(log, &records[0]), page),
        Operation::Prepare => finish(log.prepare(Operation::PREPARED), page),
        Operation::SyncBehindDead => finish(log.append(&records[0]).and_then(|_| log.sync()), page),
        operation if operation.commits() => finish(log.append_durable(&records[0]), page),
        Operation::RepairByReader => {
            while reader.follow(Some(Duration::ZERO))?.is_some() {}
            finish(Ok(()), page)
        }
        _ => finish(log.append(&records[0]), page),
    }
}

fn fill(reservation: &mut Reservation<'_>, bytes: &[u8]) -> vellum::Result<()> {
    let written = reservation.write_all(bytes);
    written.map_err(|error| error.downcast().expect("the log's errors are its own"))
}

fn drop_one(log: &Log, record: &[u8]) -> vellum::Result<()> {
    let at = log.append(record)?;
    assert_eq!(at, Lsn::ZERO, "a record was to be dropped");
    Ok(())
}

/// Tells that the operation has been acknowledged, and stops.
#[inline(always)]
fn finish<T>(answer: vellum::Result<T>, page: &SharedPage) -> vellum::Result<()> {
    let value = answer?;
    page.word(DONE).store(1, Ordering::SeqCst);
    trace::mark();
    drop(value);
    Ok(())
}
