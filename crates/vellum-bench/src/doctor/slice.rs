//! One slice: a program writes for a while, and every write is timed.
//!
//! Without a rate the next write begins when the one before has ended. With a rate records come on
//! a schedule, those that have come share a write unless the program writes each alone, and each
//! record is timed from the moment at which it was due.

use std::fs::File;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use super::machine::waited;
use super::series::{Failure, Flush, Operation};
use super::target::{Target, failure};
use crate::interrupt::is_asked;

/// Reading back what a slice has written takes no longer than one part of so many of it.
const CHECKING_SHARE: u32 = 10;
/// A slice takes no more than so many times its length.
const LATE: u32 = 2;
/// So many operations of a thread are kept: enough for any disk, and a bound for memory.
const OPERATIONS_MAX: usize = 2_000_000;

/// What a slice is to do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Order {
    pub(super) length: Duration,
    /// Of all threads together.
    pub(super) rate: Option<f64>,
    /// Has each record a write of its own?
    pub(super) alone: bool,
    /// How often another thread flushes.
    pub(super) flush_every: Option<Duration>,
}

impl Order {
    /// Is there more to write after so long? Records that have come by the end are written, too:
    /// they wait for a disk that stands still there. A disk that is behind for good is not waited
    /// for. A thread that got no processor until then writes once.
    fn has_more(&self, done: u64, elapsed: Duration) -> bool {
        let is_behind = |rate: f64| due_records(rate, done, self.length).0 > 0;
        let may_be_late = elapsed < self.length * LATE;
        done == 0 || elapsed < self.length || may_be_late && self.rate.is_some_and(is_behind)
    }
}

/// What came of it.
#[derive(Debug, Default)]
pub(super) struct Slice {
    pub(super) operations: Vec<Operation>,
    pub(super) flushes: Vec<Flush>,
    pub(super) failure: Option<Failure>,
    /// For how long writers were ready and had no processor, all of them together.
    pub(super) waited: Duration,
}

/// Has each of `targets` written by a thread of its own.
pub(super) fn run(targets: &mut [Target], order: Order) -> Slice {
    let each = Order { rate: order.rate.map(|rate| rate / targets.len() as f64), ..order };
    let begun = Instant::now();
    let slices = thread::scope(|scope| {
        let start = |target| scope.spawn(move || of_thread(target, each, begun));
        let threads: Vec<_> = targets.iter_mut().map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_default()).collect::<Vec<_>>()
    });
    let mut whole = Slice::default();
    for slice in slices {
        whole.operations.extend(slice.operations);
        whole.flushes.extend(slice.flushes);
        whole.failure = whole.failure.or(slice.failure);
        whole.waited += slice.waited;
    }
    whole.operations.sort_by_key(|one| one.end_ns);
    whole.flushes.sort_unstable();
    whole
}

fn of_thread(target: &mut Target, order: Order, begun: Instant) -> Slice {
    let Some(every) = order.flush_every else { return written(target, order, begun) };
    let (end, ended) = mpsc::channel();
    let file = target.file();
    let flusher = thread::spawn(move || flushed(&file, every, begun, &ended));
    let mut slice = written(target, order, begun);
    drop(end);
    match flusher.join() {
        Ok(Ok(flushes)) => slice.flushes = flushes,
        Ok(Err(failure)) => slice.failure = slice.failure.or(Some(failure)),
        Err(_) => {}
    }
    slice
}

/// Flushes once in a while until the other end of `ended` is dropped, and then once more.
fn flushed(
    file: &Arc<File>,
    every: Duration,
    begun: Instant,
    ended: &Receiver<()>,
) -> Result<Vec<Flush>, Failure> {
    let mut flushes = Vec::new();
    loop {
        let has_ended = ended.recv_timeout(every) == Err(RecvTimeoutError::Disconnected);
        let from = Instant::now();
        file.sync_data().map_err(|error| failure(("fdatasync", error), 0))?;
        flushes.push((nanos(begun.elapsed()), nanos(from.elapsed())));
        if has_ended {
            return Ok(flushes);
        }
    }
}

fn written(target: &mut Target, order: Order, begun: Instant) -> Slice {
    let waited_before = waited();
    let mut slice = all_written(target, order, begun);
    slice.waited = waited().saturating_sub(waited_before);
    slice
}

/// How often a writer looks whether the run is to end.
const LOOK: Duration = Duration::from_millis(20);

fn all_written(target: &mut Target, order: Order, begun: Instant) -> Slice {
    let mut slice = Slice::default();
    let (mut done, mut looked) = (0, begun);
    while order.has_more(done, begun.elapsed()) && slice.operations.len() < OPERATIONS_MAX {
        if looked.elapsed() >= LOOK {
            looked = Instant::now();
            if is_asked() {
                break;
            }
        }
        let (records, due) = match order.rate {
            None => (1, None),
            Some(rate) => {
                let elapsed = begun.elapsed().min(order.length);
                let (records, due) = due_records(rate, done, elapsed);
                if records == 0 {
                    thread::sleep(due.min(order.length).saturating_sub(begun.elapsed()));
                    continue;
                }
                let together = if order.alone { 1 } else { target.batch_records() };
                (records.min(together), Some(begun + due))
            }
        };
        let step_ns = order.rate.map_or(0, |rate| (1e9 / rate) as u64);
        match timed(target, records, due, begun) {
            Ok(operation) => slice.operations.push(Operation { step_ns, ..operation }),
            Err(failure) => {
                slice.failure = Some(failure);
                return slice;
            }
        }
        done += records;
    }
    slice.failure = target.check(order.length / CHECKING_SHARE).err().map(|what| target.lost(what));
    slice
}

/// How many records are due and not written, and when the first of them is due; the first of all is
/// due at once.
fn due_records(rate: f64, done: u64, elapsed: Duration) -> (u64, Duration) {
    let due = (elapsed.as_secs_f64() * rate).ceil() as u64;
    (due.saturating_sub(done), Duration::from_secs_f64(done as f64 / rate))
}

fn timed(
    target: &mut Target,
    records: u64,
    due: Option<Instant>,
    begun: Instant,
) -> Result<Operation, Failure> {
    target.renew(records)?;
    let from = Instant::now();
    let (written, ended) = target.write(records)?;
    Ok(Operation {
        end_ns: nanos(ended - begun),
        whole_ns: nanos(ended.saturating_duration_since(due.unwrap_or(from))),
        call_ns: nanos(ended - from),
        write_ns: nanos(written - from),
        records: records as u32,
        step_ns: 0,
    })
}

fn nanos(time: Duration) -> u64 {
    time.as_nanos() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::program::Program;

    fn slice(program: &Program, millis: u64) -> Slice {
        let dir = tempfile::tempdir().unwrap();
        let home = vellum_sys::Dir::open(dir.path()).unwrap();
        let make = |index: u32| {
            Target::make(&home, &index.to_string(), &program.pattern, 1 << 20, Duration::ZERO)
                .unwrap()
        };
        let mut targets: Vec<Target> = (0..program.pattern.threads).map(make).collect();
        let order = Order {
            length: Duration::from_millis(millis),
            rate: program.pattern.rate,
            alone: program.pattern.alone,
            flush_every: Some(program.pattern.sync_every_ms)
                .filter(|every| *every > 0)
                .map(Duration::from_millis),
        };
        run(&mut targets, order)
    }

    #[test]
    fn every_program_writes_and_its_flushes_are_timed() {
        for program in Program::all().unwrap() {
            let slice = slice(&program, 60);
            assert_eq!(slice.failure, None, "{}", program.name);
            assert!(slice.operations.is_sorted_by_key(|one| one.end_ns), "{}", program.name);
            assert!(!slice.operations.is_empty(), "{}", program.name);
            let threads = program.pattern.threads as usize;
            let flushes = if program.pattern.sync_every_ms > 0 { threads } else { 0 };
            assert_eq!(slice.flushes.len(), flushes, "{}", program.name);
        }
    }

    #[test]
    fn records_that_have_come_by_the_end_are_written_too() {
        let length = Duration::from_secs(2);
        let order = Order { length, rate: Some(100.0), alone: false, flush_every: None };
        let after = |done, millis| order.has_more(done, Duration::from_millis(millis));
        assert!(after(200, 1990) && after(50, 2500) && !after(200, 2500));
        assert!(!after(50, 4000), "it would never catch up");
        assert!(after(0, 9000), "it has not begun");
        assert!(!Order { rate: None, ..order }.has_more(50, length));
    }

    #[test]
    fn records_with_a_schedule_share_writes_and_none_is_left_out() {
        let (none, first) = due_records(1000.0, 1, Duration::from_micros(900));
        assert_eq!((none, first), (0, Duration::from_millis(1)));
        let (some, first) = due_records(1000.0, 4, Duration::from_micros(8900));
        assert_eq!((some, first), (5, Duration::from_millis(4)));
        let slice = slice(&Program::custom(Some(100_000.0), 100, 10.0), 60);
        let records: u64 = slice.operations.iter().map(|one| u64::from(one.records)).sum();
        assert!(records > slice.operations.len() as u64);
        assert!(slice.operations.iter().all(|one| one.whole_ns >= one.write_ns));
    }
}
