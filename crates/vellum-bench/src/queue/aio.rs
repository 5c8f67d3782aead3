//! Linux AIO, with many requests in flight.
//!
//! There is no asynchronous `fallocate`: zeroing is a call of its own, for which this thread waits
//! (QEMU has a thread of a pool wait for it). Writes that were handed in before are submitted
//! first.
//!
//! # Safety
//!
//! A room for unsafe code: submitting. The kernel reads the buffers until their events have come.
//! They belong to the queue, no code gets at one that is on its way ([`Slots`] sees to that), and
//! they are freed after the context, whose end waits for everything in flight.
#![allow(unsafe_code)]

use std::fs::File;
use std::ops::Range;

use rustix::fs::{FallocateFlags, fallocate};

use super::{Slots, WriteQueue, Zero};
use crate::error::{Context, Error, Result};
use crate::ways::aio::{Event, Queue, Request};

/// Direct writes with `io_submit` and `io_getevents`.
pub(crate) struct AioQueue {
    /// Dropped before the buffers: see above.
    queue: Queue,
    file: File,
    slots: Slots,
    /// Handed in, not yet submitted.
    handed_in: Vec<Request>,
    in_flight: usize,
    events: Vec<Event>,
}

impl AioQueue {
    /// For `depth` writes at a time of at most `bytes` each, into a file opened with `O_DIRECT`.
    pub(crate) fn new(file: File, depth: usize, bytes: usize) -> Result<AioQueue> {
        let queue =
            Queue::new(depth as u32).map_err(|e| Error::os_or_unsupported("io_setup", e))?;
        Ok(AioQueue {
            queue,
            file,
            slots: Slots::new(depth, bytes),
            handed_in: Vec::with_capacity(depth),
            in_flight: 0,
            events: vec![Event::default(); depth],
        })
    }

    fn submit(&mut self) -> Result<()> {
        while !self.handed_in.is_empty() {
            let mut requests: Vec<*mut Request> =
                self.handed_in.iter_mut().map(std::ptr::from_mut).collect();
            // SAFETY: the requests are ours, and borrowed by no other code; their bytes are those
            // of slots that were taken, which stay as they are (see above).
            let taken = unsafe { self.queue.submit(&mut requests) };
            let taken = taken.map_err(|e| Error::os_or_unsupported("io_submit", e))?;
            self.handed_in.drain(..taken);
            self.in_flight += taken;
        }
        Ok(())
    }
}

impl WriteQueue for AioQueue {
    fn buffer(&mut self, slot: usize) -> &mut [u8] {
        self.slots.buffer(slot)
    }

    fn write(&mut self, slot: usize, bytes: Range<usize>, offset: u64) -> Result<()> {
        let bytes = self.slots.take(slot, bytes);
        self.handed_in.push(Request::write(&self.file, bytes, offset, slot as u64));
        Ok(())
    }

    fn zero_and_write(
        &mut self,
        slot: usize,
        zero: Zero,
        bytes: Range<usize>,
        offset: u64,
    ) -> Result<()> {
        self.submit()?;
        fallocate(&self.file, FallocateFlags::ZERO_RANGE, zero.offset, zero.len)
            .map_err(|error| Error::os_or_unsupported("fallocate with ZERO_RANGE", error))?;
        self.write(slot, bytes, offset)
    }

    fn wait(&mut self, done: &mut Vec<usize>) -> Result<()> {
        self.submit()?;
        if self.in_flight == 0 {
            return Ok(());
        }
        let count = self.queue.wait(&mut self.events).context(|| "io_getevents")?;
        self.in_flight -= count;
        for event in &self.events[..count] {
            let slot = event.data as usize;
            let written = event.written();
            let written = written.map_err(|e| Error::os_or_unsupported("AIO write", e))?;
            self.slots.give_back(slot, written)?;
            done.push(slot);
        }
        Ok(())
    }
}
