//! What runs in the process that will be killed.
//!
//! A victim stops itself three times: when it has prepared what the survivor may see first, when
//! the operation under test begins, and when it has been acknowledged. Between the last two its
//! tracer takes it instruction by instruction.

use std::fmt::Display;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use vellum::{Log, Lsn};

use crate::full;
use crate::payload::Payload;
use crate::scenario::{Case, Operation};
use crate::trace::{self, Go, SharedPage, Stop};

/// Word of the shared page: 1 once the operation under test has been acknowledged.
pub const DONE: usize = 0;
/// Word of the shared page: where the victim trims or truncates to, or what it marks.
pub const TRIM_TO: usize = 1;
/// Word of the shared page: number of a process that outlives the victim and is to be ended.
const LINGERING: usize = 2;
/// Seconds for which such a process lives if nobody ends it.
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
                operate(case, log, &records, page)
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
    if let (Some(log), Some(record)) = (&log, operation.record_before()) {
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
    match log {
        None => operate_by_opening(case, dir, page),
        Some(log) if operation == Operation::DetachBesideChild => {
            let child = trace::fork(|| trace::linger(LINGER_SECONDS))?;
            page.word(LINGERING).store(child as u64, Ordering::SeqCst);
            trace::mark();
            drop(log);
            finish(Ok::<_, String>(()), page)
        }
        Some(log) if operation == Operation::Close => {
            trace::mark();
            drop(log);
            finish(Ok::<_, String>(()), page)
        }
        Some(log) => operate(case, &log, &payloads(case), page),
    }
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

/// Where the record stands to which the victim trims.
fn find_trim_target(log: &Log) -> anyhow::Result<Lsn> {
    let mut reader = log.reader(Lsn::ZERO)?;
    for _ in 0..Operation::TRIM_TO {
        reader.next()?;
    }
    // A text reader stands at the end of the segment until it looks for the next line.
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
    let is_last_step = |child| trace::brings_to_the_device(child, case.is_staged());
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

fn operate_by_opening(case: &Case, dir: &Path, page: &SharedPage) -> anyhow::Result<()> {
    let options = case.victim_options();
    trace::mark();
    let log = options.open(dir);
    if case.operation == Operation::AttachDetach {
        let error = log.as_ref().err().map(ToString::to_string);
        drop(log);
        return finish(error.map_or(Ok(()), Err), page);
    }
    finish(log, page)
}

fn operate(case: &Case, log: &Log, records: &[Vec<u8>], page: &SharedPage) -> anyhow::Result<()> {
    let mut reader = log.reader(Lsn::ZERO)?;
    let trim_to = Lsn::new(page.word(TRIM_TO).load(Ordering::SeqCst));
    trace::mark();
    match case.operation {
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
            reservation.write_all(first)?;
            reservation.write_all(second)?;
            finish(reservation.publish(), page)
        }
        Operation::Abandon => {
            let mut reservation = log.reserve(records[0].len())?;
            reservation.write_all(&records[0][..records[0].len() / 2])?;
            drop(reservation);
            finish(Ok::<_, String>(()), page)
        }
        Operation::Trim => finish(log.trim(trim_to), page),
        Operation::Truncate => finish(log.truncate(trim_to), page),
        Operation::Rotate => finish(log.rotate().and_then(|()| log.append(&records[0])), page),
        Operation::SetCheckpoint => finish(log.set_checkpoint(trim_to), page),
        operation if operation.drops() => finish(full::drop_one(log, &records[0]), page),
        Operation::Prepare => finish(log.prepare(Operation::PREPARED), page),
        operation if operation.commits() => finish(log.append_durable(&records[0]), page),
        Operation::RepairByReader => {
            while reader.follow(Some(Duration::ZERO))?.is_some() {}
            finish(Ok::<_, String>(()), page)
        }
        _ => finish(log.append(&records[0]), page),
    }
}

/// Tells that the operation has been acknowledged, and stops.
#[inline(always)]
fn finish<T, E: Display>(answer: Result<T, E>, page: &SharedPage) -> anyhow::Result<()> {
    match answer {
        Ok(value) => {
            page.word(DONE).store(1, Ordering::SeqCst);
            trace::mark();
            drop(value);
            Ok(())
        }
        Err(error) => anyhow::bail!("the operation failed: {error}"),
    }
}
