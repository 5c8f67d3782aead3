//! Direct writes of pieces that begin and end anywhere.
//!
//! ```text
//!            cell        cell        cell        cell
//!        |-----------|-----------|-----------|-----------|
//! piece       [aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa]
//!             memory |  straight to device   |memory: the next piece adds the rest
//! ```
//!
//! The file is a row of cells. A cell that one piece covers wholly is written straight away. A cell
//! that several pieces share is put together in memory. It is written once, when it is full, or at
//! the end. So no block is ever written twice, none is read back, and no block has a direct and a
//! buffered writer.
//!
//! A direct write returns when the device has it. Several threads keep a device busy in this way.
//! One alone would wait a round trip for each of its pieces. So a thread that writes alone goes
//! through the page cache, which writes each piece behind its back and keeps none
//! (`RWF_DONTCACHE`).
//!
//! **Invariant**: every byte of a cell takes the same path: straight to the device, through the
//! cell's memory, or (where too many cells are open, a thread writes alone, or direct writes are
//! refused) through the page cache. A cell is a whole number of pages and of blocks. So the page
//! cache never holds a page that a direct write changes on the device.

use std::collections::HashMap;
use std::io::IoSlice;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use rustix::io;
use vellum_sys::aligned::{HUGE_FROM_BYTES, MEMORY_ALIGNMENT_BYTES};
use vellum_sys::{self as sys, AlignedBuffer, HUGE_PAGE_BYTES};

use super::buffer::Pool;
use super::lock;
use super::preallocation::Preallocation;

/// Unit in which parts of pieces are put together: large enough that a direct write of it is no
/// waste, small enough that copying one at each end of a piece is cheap.
pub(super) const CELL_BYTES: u64 = 64 << 10;
/// Memory for open cells ends here (64 MiB); more go through the page cache.
const OPEN_CELLS_MAX: usize = 1024;
/// Bytes are copied this many at a time, so that it stays in the processor's cache.
const COPY_BYTES: usize = 1 << 20;
/// Pieces that are copied unless they are in huge pages: from single pages the kernel makes several
/// requests of one, and the device takes longer. Longer pieces keep a device busy anyway.
const SCATTERED_BYTES: Range<usize> = HUGE_FROM_BYTES..4 << 20;

/// A part of the file that several pieces share.
#[derive(Debug)]
enum Cell {
    /// The bytes so far, and their number.
    Open { memory: AlignedBuffer, filled: usize },
    /// Its bytes go through the page cache.
    Passed,
}

/// Direct writes into a file.
#[derive(Debug)]
pub(super) struct Direct {
    fd: OwnedFd,
    pub(super) preallocation: Preallocation,
    len: Option<u64>,
    block_bytes: usize,
    memory_alignment: usize,
    cells: Mutex<HashMap<u64, Arc<Mutex<Cell>>>>,
    is_refused: AtomicBool,
    writers: Writers,
    /// Whether the page cache keeps the bytes that go through it.
    keeps: AtomicBool,
}

/// The threads that write at the moment.
#[derive(Debug, Default)]
struct Writers {
    count: AtomicUsize,
    /// The number of the one that began last.
    last: AtomicUsize,
}

/// A thread that writes, until it is dropped.
struct Writer<'a> {
    writers: &'a Writers,
    /// Whether no other thread writes, or has begun since this one last did.
    is_alone: bool,
}

/// The means of every step: the descriptor for the page cache, and memory.
#[derive(Clone, Copy)]
pub(super) struct Means<'a> {
    pub(super) buffered: BorrowedFd<'a>,
    pub(super) pool: &'a Pool,
}

impl Direct {
    /// Direct writes through `fd`, which was opened for them.
    pub(super) fn new(fd: OwnedFd, len: Option<u64>) -> io::Result<Direct> {
        let memory_alignment = sys::file::direct_memory_alignment(&fd)
            .unwrap_or(MEMORY_ALIGNMENT_BYTES)
            .min(MEMORY_ALIGNMENT_BYTES);
        Ok(Direct {
            block_bytes: block_bytes(&fd)?,
            preallocation: Preallocation::whole(len),
            fd,
            len,
            memory_alignment,
            cells: Mutex::default(),
            is_refused: AtomicBool::new(false),
            writers: Writers::default(),
            keeps: AtomicBool::new(false),
        })
    }

    /// Whether the filesystem refused a direct write, so that all went through the page cache.
    pub(super) fn is_refused(&self) -> bool {
        self.is_refused.load(Ordering::Relaxed)
    }

    /// Writes `bytes` at `offset`.
    pub(super) fn write(&self, means: Means<'_>, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let end = offset + bytes.len() as u64;
        self.preallocation.ready(means.buffered, offset, end)?;
        let first_whole = offset.next_multiple_of(CELL_BYTES).min(end);
        let last_whole = (end / CELL_BYTES * CELL_BYTES).max(first_whole);
        let (head, rest) = bytes.split_at((first_whole - offset) as usize);
        let (middle, tail) = rest.split_at((last_whole - first_whole) as usize);
        let head = self.add(means, offset, head)?;
        let tail = self.add(means, last_whole, tail)?;
        let begin = if head.is_some() { offset / CELL_BYTES * CELL_BYTES } else { first_whole };
        let writer = self.writers.enter();
        let parts = [head.as_deref().unwrap_or(&[]), middle, tail.as_deref().unwrap_or(&[])];
        if !writer.is_alone || !self.write_behind(means, begin, parts)? {
            self.write_run(means, begin, head.as_deref(), middle, tail.as_deref())?;
        }
        [head, tail].into_iter().flatten().for_each(|cell| means.pool.put(cell));
        Ok(())
    }

    /// Writes whole cells through a page cache that keeps none of them; false where it would.
    fn write_behind(&self, means: Means<'_>, offset: u64, parts: [&[u8]; 3]) -> io::Result<bool> {
        if self.keeps.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let mut slices = parts.map(IoSlice::new);
        match sys::file::write_all_behind_at(means.buffered, &mut slices, offset) {
            Err(errno) if sys::file::is_unsupported(errno) => {
                self.keeps.store(true, Ordering::Relaxed);
                Ok(false)
            }
            answer => answer.map(|()| true),
        }
    }

    /// Writes whole cells with the ones that this piece has filled up before and behind them, in as
    /// few writes as can be.
    fn write_run(
        &self,
        means: Means<'_>,
        mut offset: u64,
        mut head: Option<&[u8]>,
        mut middle: &[u8],
        tail: Option<&[u8]>,
    ) -> io::Result<()> {
        let is_straight = self.is_straight(middle);
        let mut memory = AlignedBuffer::default();
        if !is_straight && !middle.is_empty() {
            memory = means.pool.take(COPY_BYTES.min(middle.len()));
        }
        loop {
            let len = if is_straight { middle.len() } else { middle.len().min(memory.len()) };
            let (mut now, rest) = middle.split_at(len);
            if !is_straight {
                memory[..len].copy_from_slice(now);
                now = &memory[..len];
            }
            let tail = tail.filter(|_| rest.is_empty());
            let parts = [head.take().unwrap_or(&[]), now, tail.unwrap_or(&[])];
            self.write_blocks(means, offset, parts)?;
            offset += parts.iter().map(|part| part.len() as u64).sum::<u64>();
            middle = rest;
            if middle.is_empty() {
                means.pool.put(memory);
                return Ok(());
            }
        }
    }

    /// Whether a direct write takes these bytes as they are, and fast.
    fn is_straight(&self, bytes: &[u8]) -> bool {
        let address = bytes.as_ptr().addr();
        let may_scatter = SCATTERED_BYTES.contains(&bytes.len());
        address.is_multiple_of(self.memory_alignment)
            && (!may_scatter || address.is_multiple_of(HUGE_PAGE_BYTES))
    }

    /// Writes whole blocks from aligned memory, continuing after short writes.
    fn write_blocks(&self, means: Means<'_>, mut offset: u64, parts: [&[u8]; 3]) -> io::Result<()> {
        if !self.is_refused() {
            let mut slices = parts.map(IoSlice::new);
            match sys::file::write_all_vectored_at(&self.fd, &mut slices, offset) {
                // Also the rest of a short write that ended within a block: a full disk, as the
                // page cache will say.
                Err(errno) if sys::file::is_unsupported(errno) => {
                    self.is_refused.store(true, Ordering::Relaxed);
                }
                answer => return answer,
            }
        }
        for part in parts {
            sys::file::write_all_at(means.buffered, part, offset)?;
            offset += part.len() as u64;
        }
        Ok(())
    }

    /// Adds bytes to one cell. Where they were the last that it lacked, it is answered to be
    /// written; the last one of the file is written here.
    fn add(
        &self,
        means: Means<'_>,
        offset: u64,
        bytes: &[u8],
    ) -> io::Result<Option<AlignedBuffer>> {
        if bytes.is_empty() {
            return Ok(None);
        }
        let (index, place) = (offset / CELL_BYTES, (offset % CELL_BYTES) as usize);
        let cell = self.cell(means.pool, index);
        let mut cell = lock(&cell);
        let Cell::Open { memory, filled } = &mut *cell else {
            return sys::file::write_all_at(means.buffered, bytes, offset).map(|()| None);
        };
        memory[place..place + bytes.len()].copy_from_slice(bytes);
        *filled += bytes.len();
        let span = self.span(index);
        if *filled < span {
            return Ok(None);
        }
        lock(&self.cells).remove(&index);
        let memory = std::mem::take(memory);
        if span == memory.len() {
            return Ok(Some(memory));
        }
        self.close(means, index, memory).map(|()| None)
    }

    fn cell(&self, pool: &Pool, index: u64) -> Arc<Mutex<Cell>> {
        let mut cells = lock(&self.cells);
        let is_full = cells.len() >= OPEN_CELLS_MAX;
        let new = || Arc::new(Mutex::new(if is_full { Cell::Passed } else { Cell::open(pool) }));
        Arc::clone(cells.entry(index).or_insert_with(new))
    }

    /// Bytes of the file that are in a cell.
    fn span(&self, index: u64) -> usize {
        let rest = self.len.map_or(CELL_BYTES, |len| len - index * CELL_BYTES);
        rest.min(CELL_BYTES) as usize
    }

    /// Writes a cell: whole blocks past the page cache, the rest at the end of the file through it.
    fn close(&self, means: Means<'_>, index: u64, memory: AlignedBuffer) -> io::Result<()> {
        let (offset, span) = (index * CELL_BYTES, self.span(index));
        let blocks = span / self.block_bytes * self.block_bytes;
        self.write_blocks(means, offset, [&[], &memory[..blocks], &[]])?;
        let rest = &memory[blocks..span];
        sys::file::write_all_at(means.buffered, rest, offset + blocks as u64)?;
        means.pool.put(memory);
        Ok(())
    }

    /// Writes what is still in memory: cells at the end of the file or beside a gap.
    pub(super) fn finish(&self, means: Means<'_>) -> io::Result<()> {
        let cells = std::mem::take(&mut *lock(&self.cells));
        for (index, cell) in cells {
            let cell = std::mem::replace(&mut *lock(&cell), Cell::Passed);
            if let Cell::Open { memory, .. } = cell {
                self.close(means, index, memory)?;
            }
        }
        Ok(())
    }
}

impl Writers {
    fn enter(&self) -> Writer<'_> {
        // Only the speed depends on these.
        let is_first = self.count.fetch_add(1, Ordering::Relaxed) == 0;
        // No thread has the number 0.
        let number = sys::thread_number::get() + 1;
        let is_same = self.last.swap(number, Ordering::Relaxed) == number;
        Writer { writers: self, is_alone: is_first && is_same }
    }
}

impl Drop for Writer<'_> {
    fn drop(&mut self) {
        self.writers.count.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Cell {
    /// A cell of zeros, as gaps in the file are.
    fn open(pool: &Pool) -> Cell {
        let mut memory = pool.take(CELL_BYTES as usize);
        memory.fill(0);
        Cell::Open { memory, filled: 0 }
    }
}

/// The unit of direct writes: blocks of the filesystem, so that none is written in parts, and
/// pages, so that the page cache holds none in part.
fn block_bytes(fd: &OwnedFd) -> io::Result<usize> {
    let block = sys::file::block_len(fd.as_fd())?.clamp(4096, CELL_BYTES);
    let block = if block.is_power_of_two() { block } else { 4096 };
    Ok((block as usize).max(rustix::param::page_size()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_alone_if_no_other_writes_or_has_begun_since() {
        let writers = Writers::default();
        let in_another = |act: &(dyn Fn() + Sync)| {
            std::thread::scope(|scope| scope.spawn(act).join().unwrap());
        };
        assert!(!writers.enter().is_alone, "nobody knows yet");
        assert!(writers.enter().is_alone);
        in_another(&|| assert!(!writers.enter().is_alone, "the first was here before"));
        assert!(!writers.enter().is_alone, "the other was here before");
        let writer = writers.enter();
        assert!(writer.is_alone);
        in_another(&|| assert!(!writers.enter().is_alone, "the first still writes"));
    }
}
