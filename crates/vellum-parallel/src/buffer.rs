//! Memory that direct writes take as it is, used again and again.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Mutex;

use vellum_sys::AlignedBuffer;

use super::lock;

/// More than this is given back to the system, so that a burst of buffers costs memory once.
const POOLED_BYTES_MAX: usize = 64 << 20;

/// Memory that waits to be used again.
#[derive(Debug, Default)]
pub(super) struct Pool {
    idle: Mutex<Vec<AlignedBuffer>>,
}

impl Pool {
    /// Memory of `len` bytes: the shortest idle one that is long enough, or new.
    pub(super) fn take(&self, len: usize) -> AlignedBuffer {
        let mut idle = lock(&self.idle);
        let fits = idle.iter().enumerate().filter(|(_, memory)| memory.capacity() >= len);
        let best = fits.min_by_key(|(_, memory)| memory.capacity()).map(|(index, _)| index);
        match best {
            // A small piece does not occupy memory for a large one.
            Some(index) if idle[index].capacity() / 4 <= len => {
                idle.swap_remove(index).with_len(len)
            }
            _ => {
                drop(idle);
                AlignedBuffer::new(len)
            }
        }
    }

    /// Keeps memory for the next taker.
    pub(super) fn put(&self, memory: AlignedBuffer) {
        let mut idle = lock(&self.idle);
        let pooled: usize = idle.iter().map(AlignedBuffer::capacity).sum();
        if memory.capacity() > 0 && pooled + memory.capacity() <= POOLED_BYTES_MAX {
            idle.push(memory);
        }
    }
}

/// Memory to make a piece in: see [`ResultFile::buffer`](super::ResultFile::buffer).
///
/// It is a slice of bytes, and goes back to the file when it is dropped.
pub struct Buffer<'a> {
    memory: AlignedBuffer,
    pool: &'a Pool,
}

impl<'a> Buffer<'a> {
    pub(super) fn new(pool: &'a Pool, len: usize) -> Buffer<'a> {
        Buffer { memory: pool.take(len), pool }
    }
}

impl Deref for Buffer<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory
    }
}

impl DerefMut for Buffer<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory
    }
}

impl Drop for Buffer<'_> {
    fn drop(&mut self) {
        self.pool.put(std::mem::take(&mut self.memory));
    }
}

impl fmt::Debug for Buffer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer").field("len", &self.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use vellum_sys::HUGE_PAGE_BYTES;
    use vellum_sys::aligned::{HUGE_FROM_BYTES, MEMORY_ALIGNMENT_BYTES};

    use super::*;

    #[test]
    fn memory_is_aligned_and_used_again() {
        let pool = Pool::default();
        let first = pool.take(100_000);
        let address = first.as_ptr();
        assert!(address.addr().is_multiple_of(MEMORY_ALIGNMENT_BYTES));
        pool.put(first);
        let second = pool.take(50_000);
        assert_eq!((second.as_ptr(), second.len()), (address, 50_000));
        assert_ne!(pool.take(50_000).as_ptr(), address, "nobody shares it");
        let large = pool.take(HUGE_FROM_BYTES);
        assert!(large.as_ptr().addr().is_multiple_of(HUGE_PAGE_BYTES));
        assert_eq!(large.len(), HUGE_FROM_BYTES);
    }
}
