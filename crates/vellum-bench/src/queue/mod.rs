//! Many direct writes in flight at once, with Linux AIO, io_uring, a pool of threads, or through a
//! server of network block devices.
//!
//! A queue owns its file and a buffer for each of its *slots*. A writer fills the buffer of a free
//! slot and hands the slot in; it comes back when its write has been done. Slots that were handed
//! in reach the kernel with the next [`WriteQueue::wait`] at the latest.

use std::fs::{File, OpenOptions};
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::error::{Error, Result};
use crate::ways::direct::AlignedBuffer;

mod aio;
mod nbd;
#[cfg(test)]
mod tests;
mod threads;
mod uring;

pub(crate) use aio::AioQueue;
pub(crate) use nbd::{NbdQueue, connections};
pub(crate) use threads::ThreadQueue;
pub(crate) use uring::UringQueue;

/// Writes that are on their way.
///
/// An error ends a queue: the results of the writes that are on their way then are unknown.
pub(crate) trait WriteQueue {
    /// The buffer of a slot that is free.
    fn buffer(&mut self, slot: usize) -> &mut [u8];

    /// Hands in these `bytes` of the slot's buffer, to be written at `offset`.
    fn write(&mut self, slot: usize, bytes: Range<usize>, offset: u64) -> Result<()>;

    /// The same, after `zero` has been allocated and zeroed with `FALLOC_FL_ZERO_RANGE`.
    fn zero_and_write(
        &mut self,
        slot: usize,
        zero: Zero,
        bytes: Range<usize>,
        offset: u64,
    ) -> Result<()>;

    /// Waits until at least one write has been done, if any is on its way, and adds the slots that
    /// are free again to `done`.
    fn wait(&mut self, done: &mut Vec<usize>) -> Result<()>;
}

/// A range of a file to be zeroed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Zero {
    pub(crate) offset: u64,
    pub(crate) len: u64,
}

/// Opens a file that exists, past the page cache.
pub(crate) fn open_direct(path: &Path) -> Result<File> {
    let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_DIRECT).open(path);
    file.map_err(|error| Error::os_or_unsupported("open with O_DIRECT", error))
}

/// The buffers of a queue, and which of them are on their way.
struct Slots {
    slots: Vec<Slot>,
}

struct Slot {
    buffer: AlignedBuffer,
    /// How many bytes of it are being written; 0 if it is free.
    len: usize,
}

impl Slots {
    fn new(count: usize, bytes: usize) -> Slots {
        let slot = || Slot { buffer: AlignedBuffer::new(bytes), len: 0 };
        Slots { slots: std::iter::repeat_with(slot).take(count).collect() }
    }

    fn buffer(&mut self, slot: usize) -> &mut [u8] {
        let slot = &mut self.slots[slot];
        assert_eq!(slot.len, 0, "nobody changes what is being written");
        slot.buffer.as_mut_slice()
    }

    /// Takes a slot for a write of these `bytes`, and returns them.
    fn take(&mut self, slot: usize, bytes: Range<usize>) -> &[u8] {
        let slot = &mut self.slots[slot];
        assert!(slot.len == 0 && !bytes.is_empty(), "a slot has one write at a time");
        slot.len = bytes.len();
        &slot.buffer.as_slice()[bytes]
    }

    /// How many bytes of a slot are being written.
    fn len(&self, slot: usize) -> Option<usize> {
        self.slots.get(slot).map(|slot| slot.len).filter(|len| *len > 0)
    }

    /// A write has been done: was it whole?
    fn give_back(&mut self, slot: usize, written: usize) -> Result<()> {
        let len = std::mem::take(&mut self.slots[slot].len);
        if written == len {
            return Ok(());
        }
        Err(Error::failed(format!("a write wrote {written} of {len} bytes")))
    }
}
