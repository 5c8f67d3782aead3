//! A pool of threads, each of which makes one call after the other and waits for it, as QEMU does
//! with `aio=threads`.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use rustix::fs::{FallocateFlags, fallocate};

use super::{WriteQueue, Zero};
use crate::error::{Context, Error, Result};
use crate::ways::direct::AlignedBuffer;

/// QEMU's pool has no more either.
const THREADS_MAX: usize = 64;

/// Direct writes with `pwrite`, by as many threads as writes are on their way.
pub(crate) struct ThreadQueue {
    /// `None` while a slot's write is on its way: then a thread has the buffer.
    slots: Vec<Option<AlignedBuffer>>,
    /// `None` only at the end: the threads end when no more can be handed in.
    jobs: Option<Sender<Job>>,
    results: Receiver<Done>,
    threads: Vec<thread::JoinHandle<()>>,
    in_flight: usize,
}

struct Job {
    slot: usize,
    buffer: AlignedBuffer,
    zero: Option<Zero>,
    bytes: Range<usize>,
    offset: u64,
}

struct Done {
    slot: usize,
    buffer: AlignedBuffer,
    result: Result<()>,
}

impl ThreadQueue {
    /// For `depth` writes at a time of at most `bytes` each, into a file opened with `O_DIRECT`.
    pub(crate) fn new(file: File, depth: usize, bytes: usize) -> Result<ThreadQueue> {
        let (jobs, receiver) = channel();
        let (sender, results) = channel();
        let (file, receiver) = (Arc::new(file), Arc::new(Mutex::new(receiver)));
        let start = |_| {
            let (file, receiver, sender) = (file.clone(), receiver.clone(), sender.clone());
            let work = move || work(&file, &receiver, &sender);
            thread::Builder::new().spawn(work).context(|| "start a thread")
        };
        let threads = (0..depth.min(THREADS_MAX)).map(start).collect::<Result<Vec<_>>>()?;
        let slots = std::iter::repeat_with(|| Some(AlignedBuffer::new(bytes))).take(depth);
        let slots = slots.collect();
        Ok(ThreadQueue { slots, jobs: Some(jobs), results, threads, in_flight: 0 })
    }

    fn hand_in(
        &mut self,
        slot: usize,
        zero: Option<Zero>,
        bytes: Range<usize>,
        offset: u64,
    ) -> Result<()> {
        assert!(!bytes.is_empty(), "a write has bytes");
        let buffer = self.slots[slot].take().expect("a slot has one write at a time");
        let job = Job { slot, buffer, zero, bytes, offset };
        let sent = self.jobs.as_ref().map(|jobs| jobs.send(job));
        match sent {
            Some(Ok(())) => {
                self.in_flight += 1;
                Ok(())
            }
            _ => Err(all_ended()),
        }
    }

    fn take(&mut self, done: Done, slots: &mut Vec<usize>) -> Result<()> {
        self.in_flight -= 1;
        self.slots[done.slot] = Some(done.buffer);
        slots.push(done.slot);
        done.result
    }
}

impl WriteQueue for ThreadQueue {
    fn buffer(&mut self, slot: usize) -> &mut [u8] {
        let buffer = self.slots[slot].as_mut();
        buffer.expect("nobody changes what is being written").as_mut_slice()
    }

    fn write(&mut self, slot: usize, bytes: Range<usize>, offset: u64) -> Result<()> {
        self.hand_in(slot, None, bytes, offset)
    }

    fn zero_and_write(
        &mut self,
        slot: usize,
        zero: Zero,
        bytes: Range<usize>,
        offset: u64,
    ) -> Result<()> {
        self.hand_in(slot, Some(zero), bytes, offset)
    }

    fn wait(&mut self, done: &mut Vec<usize>) -> Result<()> {
        if self.in_flight == 0 {
            return Ok(());
        }
        let first = self.results.recv().map_err(|_| all_ended())?;
        let mut outcome = self.take(first, done);
        while let Ok(next) = self.results.try_recv() {
            outcome = outcome.and(self.take(next, done));
        }
        outcome
    }
}

impl Drop for ThreadQueue {
    /// Waits for the writes on their way.
    fn drop(&mut self) {
        self.jobs = None;
        for thread in self.threads.drain(..) {
            // One that panicked has said so.
            let _ = thread.join();
        }
    }
}

fn all_ended() -> Error {
    Error::failed("the threads that write have ended")
}

/// One thread of the pool.
fn work(file: &File, jobs: &Mutex<Receiver<Job>>, results: &Sender<Done>) {
    loop {
        let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = job else { return };
        let result = carry_out(file, &job);
        let Job { slot, buffer, .. } = job;
        if results.send(Done { slot, buffer, result }).is_err() {
            return;
        }
    }
}

fn carry_out(file: &File, job: &Job) -> Result<()> {
    if let Some(Zero { offset, len }) = job.zero {
        let zeroed = fallocate(file, FallocateFlags::ZERO_RANGE, offset, len);
        zeroed.trying("fallocate with ZERO_RANGE")?;
    }
    let bytes = &job.buffer.as_slice()[job.bytes.clone()];
    file.write_all_at(bytes, job.offset).trying("pwrite")
}
