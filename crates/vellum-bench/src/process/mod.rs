//! Processes that work at the same time: fork, the start gate, the clock, the reports.
//!
//! ```text
//! parent   fork ×n … wait for n ready … clock, gate opens … wait for n exits … read the slots
//! child       open, get all ready, │ gate │ work, clock, slot, exit
//! ```
//!
//! Children report that they are ready by a byte in a pipe and wait at the gate on a futex; the
//! parent sleeps in `poll` on that pipe and on a pidfd for each child. So no process spins on a
//! core that another one needs, and a child that dies at any point is noticed at once instead of
//! being waited for.
//!
//! The clock starts when all are ready, right before the gate opens, and stops when the last child
//! has finished: each takes the time itself, so that neither exit nor reaping is measured.
//!
//! **If a child dies** (or hangs beyond the limit) the race fails with its name and cause, and the
//! other children are killed. **If the run is to end early**, all are killed. **If the parent
//! dies**, its children are killed by the kernel.

use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::thread::futex;
use rustix::time::{ClockId, clock_gettime};
use zerocopy::FromZeros;

use crate::error::{Context, Error, ErrorKind, Result};
use crate::interrupt;
use crate::shared::Shared;

mod alone;
mod child;

pub(crate) use alone::figures;
use child::page_faults;
pub(crate) use child::{Child, fork_child};

/// The result of a race.
#[derive(Debug)]
pub(crate) struct Race {
    /// From the opening of the gate until the last one had finished.
    pub(crate) wall_ns: u64,
    /// How many records each process was acknowledged, in order of process.
    pub(crate) acknowledged: Vec<u64>,
    /// Page faults, minor and major, of all processes between the gate and their finish.
    pub(crate) page_faults: u64,
}

/// Words that all processes of a race share.
///
/// | word | writer | ordering |
/// |---|---|---|
/// | `open` | the parent, once, 0 → 1 | release; pairs with the acquire in `Runner::stand_ready` |
/// | `finished` | each child, once, +1 | acquire-release among the children |
#[derive(FromZeros)]
#[repr(C, align(128))]
struct Gate {
    open: AtomicU32,
    finished: AtomicU32,
}

const TEXT_BYTES: usize = 984;

/// The report of one child. Only the child writes; the parent reads after the child has exited,
/// which orders everything, so all accesses are relaxed.
#[derive(FromZeros)]
#[repr(C, align(128))]
pub(crate) struct Slot {
    acknowledged: AtomicU64,
    done_ns: AtomicU64,
    page_faults: AtomicU64,
    /// 0 until the child has said how it ended.
    outcome: AtomicU32,
    text_len: AtomicU32,
    /// Why it failed.
    text: [AtomicU8; TEXT_BYTES],
}

const DONE: u32 = 1;
const FAILED: u32 = 2;
/// The failed call is one that the system can't do.
const UNSUPPORTED: u32 = 3;

/// A child's side of the race.
pub(crate) struct Runner<'a> {
    index: u32,
    count: u32,
    gate: &'a Gate,
    slot: &'a Slot,
    ready: &'a OwnedFd,
}

impl Runner<'_> {
    /// Which process of the race this is, from 0.
    pub(crate) fn index(&self) -> u32 {
        self.index
    }

    /// Everything is prepared: waits until all are, and returns when the clock has started.
    pub(crate) fn stand_ready(&self) -> Result<Standing> {
        let faults_before = page_faults()?;
        rustix::io::write(self.ready, &[0]).context(|| "report to the start")?;
        while self.gate.open.load(Ordering::Acquire) == 0 {
            match futex::wait(&self.gate.open, futex::Flags::empty(), 0, None) {
                Ok(()) | Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(error).context(|| "wait at the start"),
            }
        }
        Ok(Standing { faults_before, begun: Instant::now() })
    }

    /// Has `count` threads do `work`. Each gets ready and then waits at its [`Start`]; the clock
    /// starts when all threads of all processes do so. Returns what they came to when all have
    /// ended.
    pub(crate) fn with_threads<T: Send>(
        &self,
        count: u32,
        work: impl Fn(u32, &Start) -> Result<T> + Sync,
    ) -> Result<(Standing, Vec<T>)> {
        let start = Start {
            ready: Barrier::new(count as usize + 1),
            open: Barrier::new(count as usize + 1),
        };
        let (work, start) = (&work, &start);
        thread::scope(|scope| {
            let threads: Vec<_> =
                (0..count).map(|thread| scope.spawn(move || work(thread, start))).collect();
            start.ready.wait();
            let standing = self.stand_ready();
            // Whatever came of that, the threads must not wait for ever.
            start.open.wait();
            let panicked = || Error::failed("a thread panicked");
            let results =
                threads.into_iter().map(|thread| thread.join().map_err(|_| panicked())?);
            let results = results.collect::<Result<Vec<T>>>();
            Ok((standing?, results?))
        })
    }

    /// The work is done but for the steps of the last one: is this the last one?
    pub(crate) fn is_last(&self) -> bool {
        self.gate.finished.fetch_add(1, Ordering::AcqRel) + 1 == self.count
    }

    /// Stops this child's clock and leaves its report.
    pub(crate) fn finish(&self, standing: Standing, acknowledged: u64) -> Result<()> {
        let done_ns = now_ns();
        let faults = page_faults()?.saturating_sub(standing.faults_before);
        self.slot.done_ns.store(done_ns, Ordering::Relaxed);
        self.slot.acknowledged.store(acknowledged, Ordering::Relaxed);
        self.slot.page_faults.store(faults, Ordering::Relaxed);
        Ok(())
    }
}

/// The state of a child when the clock started.
#[derive(Clone, Copy)]
pub(crate) struct Standing {
    faults_before: u64,
    begun: Instant,
}

impl Standing {
    /// How long the clock has run.
    pub(crate) fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }
}

/// Where the threads of a process wait for the clock.
pub(crate) struct Start {
    ready: Barrier,
    open: Barrier,
}

impl Start {
    /// This thread is ready; returns when the clock has started.
    pub(crate) fn wait(&self) {
        self.ready.wait();
        self.open.wait();
    }
}

/// Has `count` processes do `work` at the same time, and waits for all of them.
///
/// # Errors
///
/// The first failure among the processes, by their number: an error that `work` returned, a panic,
/// a signal; or that they had not finished after `limit`, or that the run is to end.
pub(crate) fn race(
    count: u32,
    limit: Duration,
    work: &dyn Fn(&Runner<'_>) -> Result<()>,
) -> Result<Race> {
    let deadline = Instant::now() + limit;
    let gate = Shared::<Gate>::new(1)?;
    let slots = Shared::<Slot>::new(count as usize)?;
    let (ready_in, ready_out) = pipe_with(PipeFlags::CLOEXEC).context(|| "make a pipe")?;
    let mut team = Team { children: Vec::new(), slots: &slots, deadline, limit };
    for index in 0..count {
        let runner = Runner {
            index,
            count,
            gate: &gate[0],
            slot: &slots[index as usize],
            ready: &ready_out,
        };
        let child = fork_child(|| report(runner.slot, || work(&runner)))
            .context(|| format!("start process {index}"))?;
        team.children.push(child);
    }
    drop(ready_out);
    team.wait_ready(ready_in)?;

    let start_ns = now_ns();
    // Pairs with the acquire load in `Runner::stand_ready`.
    gate[0].open.store(1, Ordering::Release);
    futex::wake(&gate[0].open, futex::Flags::empty(), i32::MAX as u32)
        .context(|| "open the start gate")?;

    team.wait_exits()?;
    let sum = |word: fn(&Slot) -> &AtomicU64| {
        slots.iter().map(|slot| word(slot).load(Ordering::Relaxed)).collect::<Vec<u64>>()
    };
    let done_ns = sum(|slot| &slot.done_ns).into_iter().max().unwrap_or(start_ns);
    Ok(Race {
        wall_ns: done_ns.saturating_sub(start_ns),
        acknowledged: sum(|slot| &slot.acknowledged),
        page_faults: sum(|slot| &slot.page_faults).iter().sum(),
    })
}

impl Slot {
    /// Why the child failed; empty if it did not say.
    pub(crate) fn text(&self) -> String {
        let len = self.text_len.load(Ordering::Relaxed) as usize;
        let text = self.text.iter().take(len).map(|byte| byte.load(Ordering::Relaxed));
        String::from_utf8_lossy(&text.collect::<Vec<u8>>()).into_owned()
    }
}

/// Runs `work` in a child and leaves in its slot how it ended. Returns the exit code.
pub(crate) fn report(slot: &Slot, work: impl FnOnce() -> Result<()>) -> i32 {
    let result = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(Error::failed(format!("panicked: {}", text.unwrap_or("with no message"))))
    });
    let Err(error) = result else {
        slot.outcome.store(DONE, Ordering::Relaxed);
        return 0;
    };
    let text = error.to_string();
    let len = text.len().min(TEXT_BYTES);
    for (room, byte) in slot.text.iter().zip(text.as_bytes()) {
        room.store(*byte, Ordering::Relaxed);
    }
    slot.text_len.store(len as u32, Ordering::Relaxed);
    let is_unsupported = error.kind() == ErrorKind::Unsupported;
    let outcome = if is_unsupported { UNSUPPORTED } else { FAILED };
    slot.outcome.store(outcome, Ordering::Relaxed);
    1
}

/// The children of one race. Dropped, it kills those that still run.
struct Team<'a> {
    children: Vec<Child>,
    slots: &'a [Slot],
    deadline: Instant,
    limit: Duration,
}

impl Team<'_> {
    /// Sleeps until every child has written its byte to `ready`.
    fn wait_ready(&mut self, ready: OwnedFd) -> Result<()> {
        let mut ready = std::fs::File::from(ready);
        let mut standing = 0;
        while standing < self.children.len() {
            let running: Vec<&Child> = self.children.iter().collect();
            let (arrivals, gone) = self.sleep(Some(&ready), &running)?;
            if let Some(index) = gone.first() {
                return Err(self.end_of(*index)?.err().unwrap_or_else(|| {
                    Error::failed(format!("process {index} ended before the start"))
                }));
            }
            if arrivals {
                let mut bytes = [0; 64];
                standing += ready.read(&mut bytes).context(|| "read the ready pipe")?;
            }
        }
        Ok(())
    }

    /// Sleeps until every child has exited.
    fn wait_exits(&mut self) -> Result<()> {
        let mut left: Vec<usize> = (0..self.children.len()).collect();
        let mut failure: Option<(usize, Error)> = None;
        while !left.is_empty() {
            let running: Vec<&Child> = left.iter().map(|index| &self.children[*index]).collect();
            let (_, gone) = self.sleep(None, &running)?;
            for place in gone.into_iter().rev() {
                let index = left.remove(place);
                if let Err(error) = self.end_of(index)?
                    && failure.as_ref().is_none_or(|(first, _)| index < *first)
                {
                    failure = Some((index, error));
                }
            }
        }
        failure.map_or(Ok(()), |(_, error)| Err(error))
    }

    /// Sleeps until `ready` has bytes or one of `running` has exited: which ones, by place.
    fn sleep(
        &self,
        ready: Option<&std::fs::File>,
        running: &[&Child],
    ) -> Result<(bool, Vec<usize>)> {
        let fds = running.iter().map(|child| child.fd.as_fd()).chain(ready.map(AsFd::as_fd));
        let fds: Vec<BorrowedFd<'_>> = fds.collect();
        let Some(is_set) = interrupt::sleep(&fds, self.deadline)? else {
            let seconds = self.limit.as_secs();
            return Err(Error::failed(format!(
                "{} of {} processes had not finished after {seconds} s and were killed",
                running.len(),
                self.children.len()
            )));
        };
        let gone = (0..running.len()).filter(|place| is_set[*place]).collect();
        Ok((is_set.len() > running.len() && is_set[running.len()], gone))
    }

    /// Reaps a child that has exited. The inner result is how it ended.
    fn end_of(&mut self, index: usize) -> Result<Result<()>> {
        let status = self.children[index].reap()?;
        let slot = &self.slots[index];
        let said = |what: String| Ok(Err(Error::failed(format!("process {index} {what}"))));
        if let Some(signal) = status.terminating_signal() {
            return said(format!("was killed by signal {signal}"));
        }
        match slot.outcome.load(Ordering::Relaxed) {
            DONE => Ok(Ok(())),
            FAILED | UNSUPPORTED => said(format!("failed: {}", slot.text())),
            _ => said(format!("exited without a report, {:?}", status.exit_status())),
        }
    }
}

/// The monotonic clock, the same in all processes.
pub(crate) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cfg(test)]
mod tests;
