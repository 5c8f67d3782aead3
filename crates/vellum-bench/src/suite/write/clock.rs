//! Threads that begin at the same time, and how long it takes until the last of them is done.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::error::{Context, Result};

/// The time of a step.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Span {
    /// On the wall.
    pub(super) time: Duration,
    /// Of the processors, for all threads of this process.
    pub(super) cpu: Duration,
}

/// Has each of `workers` work in a thread of its own. All threads are ready before the clock
/// starts; it stops when the last one has done its work, before any of them has ended.
///
/// # Errors
///
/// That of the first worker, by number, that has one.
pub(super) fn together<W>(workers: Vec<W>) -> Result<Span>
where
    W: FnOnce() -> Result<()> + Send,
{
    let gate = Gate::default();
    let count = workers.len();
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for worker in workers {
            let spawned = thread::Builder::new().spawn_scoped(scope, || gate.pass(worker));
            if spawned.is_err() {
                gate.open(Sign::GoHome);
            }
            threads.push(spawned.trying("start a thread")?);
        }
        gate.wait_for(count);
        let (begun, cpu) = (Instant::now(), cpu_time());
        gate.open(Sign::Go);
        let mut time = Duration::ZERO;
        for thread in threads {
            time = time.max(join(thread)?.duration_since(begun));
        }
        Ok(Span { time, cpu: cpu_time().saturating_sub(cpu) })
    })
}

/// The same for work that is not divided: it is done by this thread.
pub(super) fn once(work: impl FnOnce() -> Result<()>) -> Result<Span> {
    let (begun, cpu) = (Instant::now(), cpu_time());
    work()?;
    Ok(Span { time: begun.elapsed(), cpu: cpu_time().saturating_sub(cpu) })
}

/// When the thread was done.
fn join(thread: ScopedJoinHandle<'_, Result<Instant>>) -> Result<Instant> {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The processor time of this process so far.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Where threads wait for the clock. They sleep: one that spins takes a core from another.
#[derive(Default)]
struct Gate {
    waiting: Mutex<(usize, Sign)>,
    changed: Condvar,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Sign {
    #[default]
    Wait,
    Go,
    GoHome,
}

impl Gate {
    /// A thread's life: waits for the sign, works, and says when it was done.
    fn pass<W: FnOnce() -> Result<()>>(&self, worker: W) -> Result<Instant> {
        let mut waiting = self.lock();
        waiting.0 += 1;
        self.changed.notify_all();
        while waiting.1 == Sign::Wait {
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        let sign = waiting.1;
        drop(waiting);
        if sign == Sign::Go {
            worker()?;
        }
        Ok(Instant::now())
    }

    fn wait_for(&self, count: usize) {
        let mut waiting = self.lock();
        while waiting.0 < count {
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn open(&self, sign: Sign) {
        self.lock().1 = sign;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, (usize, Sign)> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn all_work_and_the_clock_waits_for_the_last() {
        let sum = AtomicU32::new(0);
        let worker = |number: u32| {
            let sum = &sum;
            move || {
                sum.fetch_add(number, Ordering::Relaxed);
                Ok(())
            }
        };
        let span = together((1..=16).map(worker).collect()).unwrap();
        assert_eq!(sum.load(Ordering::Relaxed), 136);
        assert!(span.time > Duration::ZERO);
    }

    #[test]
    fn an_error_of_one_is_the_error_of_all() {
        let worker = |number: u32| {
            move || match number {
                2 => Err(io::Error::from(io::ErrorKind::WriteZero)).trying("write"),
                _ => Ok(()),
            }
        };
        let error = together((0..4).map(worker).collect()).unwrap_err();
        assert!(error.to_string().starts_with("write: "), "{error}");
    }
}
