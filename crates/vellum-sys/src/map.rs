//! Shared mappings of files: bytes that other processes may change at any time.
//!
//! # Safety
//!
//! A [`Map`] owns its address range and never gives out a Rust reference to plain bytes in it,
//! because other processes write there. Bytes are copied in and out through raw pointers after a
//! bounds check; a racing copy may see a mixture of old and new bytes, never anything else. A store
//! into a page that gets no block raises `SIGBUS`, and so does a load from a page beyond the end of
//! the file. Callers touch only pages that have blocks and lie in the file. Where storage fails all
//! the same, the [guard](crate::guard) answers the signal, and [`Map::is_lost`] says so.

use std::ffi::c_void;
use std::ops::{Deref, DerefMut};
use std::os::fd::{AsFd, AsRawFd};
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::atomic::{Ordering, compiler_fence};

use rustix::io::{self, Errno};
use rustix::mm::{self, Advice, MapFlags, MprotectFlags, ProtFlags};

use crate::advice;
use crate::guard::{Guard, OnLoss};

/// Bytes of a huge page: one entry of the page tables can map so much instead of single pages.
pub const HUGE_PAGE_BYTES: usize = 2 << 20;

/// A file, or the beginning of one, mapped into this process.
#[derive(Debug)]
pub struct Map {
    start: NonNull<u8>,
    len: usize,
    guard: Guard,
}

// SAFETY: the range belongs to the mapping and not to a thread; all access is by copies or atomics.
unsafe impl Send for Map {}
// SAFETY: as above; racing copies are allowed by the contract of this module.
unsafe impl Sync for Map {}

impl Map {
    /// Maps the first `len` bytes of `file`, shared with every other process that maps it.
    pub fn new(file: impl AsFd, len: usize, writable: bool) -> io::Result<Map> {
        Map::at(file, 0, len, writable)
    }

    /// As [`Map::new`], for words that belong together: when a part of the mapping is lost, all of
    /// it is replaced by a private copy, which `on_loss` is given before.
    pub fn of_words(
        file: impl AsFd,
        len: usize,
        writable: bool,
        on_loss: OnLoss,
    ) -> io::Result<Map> {
        Map::make(file, 0, len, writable, Some(on_loss))
    }

    /// As [`Map::new`], from `offset` on, which is a multiple of the page size.
    pub fn at(file: impl AsFd, offset: u64, len: usize, writable: bool) -> io::Result<Map> {
        Map::make(file, offset, len, writable, None)
    }

    /// As [`Map::at`], where huge pages can be mapped: `offset` is a multiple of their size.
    pub fn at_huge(file: impl AsFd, offset: u64, len: usize) -> io::Result<Map> {
        let room = aligned_room(len)?;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::SHARED | MapFlags::FIXED;
        // SAFETY: the room was just made, and no other thread knows of it.
        let mapped = unsafe {
            mm::mmap(room.as_ptr(), len, protection, flags, file, offset).inspect_err(|_| {
                let _ = mm::munmap(room.as_ptr(), len);
            })
        };
        let start = NonNull::new(mapped?.cast()).ok_or(Errno::NOMEM)?;
        Ok(Map { start, len, guard: Guard::new(start, len, None) })
    }

    fn make(
        file: impl AsFd,
        offset: u64,
        len: usize,
        writable: bool,
        on_loss: Option<OnLoss>,
    ) -> io::Result<Map> {
        let protection =
            if writable { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
        // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing of ours.
        let start =
            unsafe { mm::mmap(ptr::null_mut(), len, protection, MapFlags::SHARED, file, offset) }?;
        let start = NonNull::new(start.cast()).ok_or(Errno::NOMEM)?;
        Ok(Map { start, len, guard: Guard::new(start, len, on_loss) })
    }

    /// Whether a store into the mapping, or a load from it, has met storage that fails. Then bytes
    /// that were stored since may be in no file, and bytes that were loaded may be in none either.
    /// It stays so.
    #[inline]
    pub fn is_lost(&self) -> bool {
        self.guard.is_lost()
    }

    /// Bytes mapped; never 0, because the kernel refuses such a mapping.
    #[inline]
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Where the mapping starts; page aligned, valid for `len()` bytes while `self` lives.
    #[inline]
    pub fn as_ptr(&self) -> NonNull<u8> {
        self.start
    }

    /// Copies `bytes` to `offset`.
    ///
    /// # Panics
    ///
    /// If that would leave the mapping.
    #[inline(always)]
    pub fn write(&self, offset: usize, bytes: &[u8]) {
        assert!(offset <= self.len && bytes.len() <= self.len - offset, "write leaves the mapping");
        // SAFETY: the target range was just checked to lie in the mapping, and `bytes` is memory of
        // this process that no safe code can place inside it.
        unsafe {
            let target = self.start.as_ptr().add(offset);
            copy(bytes.as_ptr(), target, bytes.len());
        }
    }

    /// Copies `head` to `offset` and `bytes` behind it, in the other order: where the head is
    /// found, the bytes are there too, wherever this process dies.
    ///
    /// # Panics
    ///
    /// If that would leave the mapping.
    #[inline(always)]
    pub fn write_headed<const N: usize>(&self, offset: usize, head: &[u8; N], bytes: &[u8]) {
        let is_inside = offset <= self.len && N + bytes.len() <= self.len - offset;
        assert!(is_inside, "write leaves the mapping");
        // SAFETY: as in `write`, for both.
        unsafe {
            let target = self.start.as_ptr().add(offset);
            copy(bytes.as_ptr(), target.add(N), bytes.len());
            compiler_fence(Ordering::Release);
            copy(head.as_ptr(), target, N);
        }
    }

    /// Copies the bytes at `offset` into `bytes`.
    ///
    /// # Panics
    ///
    /// If that would leave the mapping.
    #[inline]
    pub fn read(&self, offset: usize, bytes: &mut [u8]) {
        assert!(offset <= self.len && bytes.len() <= self.len - offset, "read leaves the mapping");
        // SAFETY: as in `write`, the other way round.
        unsafe {
            let source = self.start.as_ptr().add(offset);
            ptr::copy_nonoverlapping(source, bytes.as_mut_ptr(), bytes.len());
        }
    }

    /// Writes the bytes from `begin` to `end` to the same offsets of `file`, continuing after short
    /// writes. Concurrent stores of other processes there are written or not.
    ///
    /// # Panics
    ///
    /// If the range leaves the mapping.
    pub fn write_to(&self, file: impl AsFd, begin: u64, end: u64) -> io::Result<()> {
        assert!(begin <= end && end <= self.len as u64, "the range leaves the mapping");
        let mut next = begin;
        while next < end {
            let len = (end - next) as usize;
            // SAFETY: the range was just checked to lie in the mapping, and the kernel reads it
            // as bytes that may change; no reference to them is made.
            let written = unsafe {
                let source = self.start.as_ptr().add(next as usize).cast_const().cast();
                libc::pwrite(file.as_fd().as_raw_fd(), source, len, next as libc::off_t)
            };
            match written {
                0 => return Err(Errno::NOSPC),
                1.. => next += written as u64,
                _ => match Errno::from_io_error(&std::io::Error::last_os_error()) {
                    Some(Errno::INTR) => {}
                    // The page cannot be read: a load would fault.
                    Some(Errno::FAULT) => return Err(Errno::IO),
                    errno => return Err(errno.unwrap_or(Errno::IO)),
                },
            }
        }
        Ok(())
    }

    /// Makes the pages of a range present and writable, so that stores there do not fault. The
    /// mapping is lost where the kernel says that they would.
    ///
    /// A hint: kernels before 5.14 do not know it and pages are faulted in one by one.
    pub fn populate(&self, offset: usize, len: usize) {
        if self.try_populate(offset, len) == Err(Errno::FAULT) {
            self.guard.lose();
        }
    }

    /// Puts the huge page at `offset`, a multiple of its size, in the place of single pages: also
    /// in a filesystem in memory that is mounted without them. At least one page must be there.
    /// Where that is refused, the single pages stay.
    pub fn collapse(&self, offset: usize) -> io::Result<()> {
        if offset.checked_add(HUGE_PAGE_BYTES).is_none_or(|end| end > self.len) {
            return Err(Errno::INVAL);
        }
        // SAFETY: the range is in the mapping, and no byte of it changes.
        unsafe {
            let start = self.start.as_ptr().add(offset);
            advice::collapse(start.cast::<c_void>(), HUGE_PAGE_BYTES)
        }
    }

    /// As [`Map::populate`], with the kernel's answer: `Ok` means that stores into the range need
    /// no block or page any more. [`Errno::FAULT`] means that a store would raise `SIGBUS`. `Err`
    /// also where the system only says that it has done it.
    pub fn try_populate(&self, offset: usize, len: usize) -> io::Result<()> {
        let page = rustix::param::page_size();
        let begin = offset / page * page;
        let limit = offset.saturating_add(len).min(self.len);
        if begin >= limit {
            return Ok(());
        }
        // SAFETY: the range is in the mapping, and populating changes no byte of it.
        unsafe {
            let start = self.start.as_ptr().add(begin);
            advice::give(start.cast::<c_void>(), limit - begin, Advice::LinuxPopulateWrite)
        }
    }
}

/// Memory of this process, in huge pages where the system gives them to those that ask.
///
/// A request to a device names each stretch of memory that it takes bytes from, and may name only
/// so many: a huge page is one stretch.
#[derive(Debug)]
pub struct HugeMemory {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the range belongs to the value and to no thread, and is reached by borrows of it alone.
unsafe impl Send for HugeMemory {}
// SAFETY: as above.
unsafe impl Sync for HugeMemory {}

impl HugeMemory {
    /// Memory of zeros from a multiple of the size of a huge page on; `len` is not 0.
    pub fn new(len: usize) -> io::Result<HugeMemory> {
        let whole = len.checked_next_multiple_of(HUGE_PAGE_BYTES).ok_or(Errno::NOMEM)?;
        let room = aligned_room(whole)?;
        let memory = HugeMemory { start: room.cast(), len: whole };
        // SAFETY: the room was just made, and no other thread knows of it. Advice changes no byte.
        unsafe {
            mm::mprotect(room.as_ptr(), whole, MprotectFlags::READ | MprotectFlags::WRITE)?;
            let _ = advice::give(room.as_ptr(), whole, Advice::LinuxHugepage);
        }
        Ok(memory)
    }
}

impl Deref for HugeMemory {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `new` has mapped that much, for reading too, and zeros are bytes.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl DerefMut for HugeMemory {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and the borrow is the only one.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl Drop for HugeMemory {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `new`, and each use of it borrows `self`.
        let _ = unsafe { mm::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

/// Addresses for `len` bytes, at a multiple of the size of a huge page, with nothing behind them.
fn aligned_room(len: usize) -> io::Result<NonNull<c_void>> {
    let kept = len.checked_next_multiple_of(HUGE_PAGE_BYTES).ok_or(Errno::NOMEM)?;
    let whole = kept.checked_add(HUGE_PAGE_BYTES).ok_or(Errno::NOMEM)?;
    // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing of ours. The
    // parts that are given back are within it.
    unsafe {
        let start =
            mm::mmap_anonymous(ptr::null_mut(), whole, ProtFlags::empty(), MapFlags::PRIVATE)?;
        let before = start.addr().next_multiple_of(HUGE_PAGE_BYTES) - start.addr();
        let room = start.byte_add(before);
        let end = len.next_multiple_of(rustix::param::page_size());
        if before > 0 {
            mm::munmap(start, before)?;
        }
        mm::munmap(room.byte_add(end), whole - before - end)?;
        NonNull::new(room).ok_or(Errno::NOMEM)
    }
}

/// Copies `len` bytes, few of them without a call.
///
/// # Safety
///
/// As for [`ptr::copy_nonoverlapping`].
#[inline(always)]
unsafe fn copy(source: *const u8, target: *mut u8, len: usize) {
    /// Copies the first and the last `T`; they may overlap.
    #[inline(always)]
    unsafe fn ends<T>(source: *const u8, target: *mut u8, len: usize) {
        let last = len - size_of::<T>();
        // SAFETY: the caller's: `len` bytes have room for a `T` at each end.
        unsafe {
            let (first, behind) = (source.cast::<T>(), source.add(last).cast::<T>());
            let (first, behind) = (first.read_unaligned(), behind.read_unaligned());
            target.cast::<T>().write_unaligned(first);
            target.add(last).cast::<T>().write_unaligned(behind);
        }
    }
    // SAFETY: the caller's.
    unsafe {
        match len {
            0 => {}
            1 => *target = *source,
            2..4 => ends::<u16>(source, target, len),
            4..8 => ends::<u32>(source, target, len),
            8..=16 => ends::<u64>(source, target, len),
            _ => ptr::copy_nonoverlapping(source, target, len),
        }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // Before others may be given the addresses.
        self.guard.end();
        // SAFETY: the range was mapped by `make`, and every copy through it borrows `self`.
        let _ = unsafe { mm::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_written_through_one_mapping_are_read_through_another() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(8192).unwrap();
        let (writer, reader) =
            (Map::new(&file, 8192, true).unwrap(), Map::new(&file, 8192, false).unwrap());
        writer.populate(4000, 1000);
        writer.write(4094, b"four");
        let mut bytes = [0; 4];
        reader.read(4094, &mut bytes);
        assert_eq!(&bytes, b"four");
    }

    fn page() -> usize {
        rustix::param::page_size()
    }

    #[test]
    fn what_is_stored_behind_the_end_of_a_file_that_was_cut_is_noted_and_kills_nobody() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(2 * page() as u64).unwrap();
        let map = Map::new(&file, 2 * page(), true).unwrap();
        map.write(0, b"kept");
        file.set_len(page() as u64).unwrap();
        map.write(0, b"Kept");
        assert!(!map.is_lost());
        map.write(page(), b"lost");
        assert!(map.is_lost());
        map.write(page(), b"again");
        let mut bytes = [0; 4];
        map.read(0, &mut bytes);
        assert_eq!(&bytes, b"Kept");
        let other = Map::new(&file, page(), true).unwrap();
        assert!(!other.is_lost(), "another mapping of the same file");
        other.read(0, &mut bytes);
        assert_eq!(&bytes, b"Kept");
    }

    #[test]
    fn a_huge_page_takes_the_place_of_single_ones_and_keeps_their_bytes() {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let file = tempfile::tempfile_in(dir.path()).unwrap();
        file.set_len(3 * HUGE_PAGE_BYTES as u64).unwrap();
        let map = Map::at_huge(&file, HUGE_PAGE_BYTES as u64, HUGE_PAGE_BYTES + 5).unwrap();
        assert!(map.as_ptr().as_ptr().addr().is_multiple_of(HUGE_PAGE_BYTES));
        map.write(0, b"kept");
        map.write(HUGE_PAGE_BYTES, b"there");
        assert_eq!(map.collapse(HUGE_PAGE_BYTES), Err(Errno::INVAL), "not all of it is mapped");
        // Not every system has huge pages, or one to give.
        let _ = map.collapse(0);
        map.write(HUGE_PAGE_BYTES - 4, b"last");
        let mut bytes = [0; 4];
        crate::file::read_up_to_at(&file, &mut bytes, HUGE_PAGE_BYTES as u64).unwrap();
        assert_eq!(&bytes, b"kept");
        crate::file::read_up_to_at(&file, &mut bytes, 2 * HUGE_PAGE_BYTES as u64 - 4).unwrap();
        assert_eq!(&bytes, b"last");
    }

    #[test]
    fn huge_memory_is_zeros_at_the_boundary_of_a_page() {
        let mut memory = HugeMemory::new(HUGE_PAGE_BYTES + 1).unwrap();
        assert!(memory.as_ptr().addr().is_multiple_of(HUGE_PAGE_BYTES));
        assert!(memory.len() > HUGE_PAGE_BYTES && memory.iter().all(|byte| *byte == 0));
        memory[HUGE_PAGE_BYTES] = 7;
        assert_eq!(memory[HUGE_PAGE_BYTES], 7);
        assert!(HugeMemory::new(usize::MAX).is_err());
    }

    #[test]
    fn what_is_read_there_is_noted_too() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(page() as u64).unwrap();
        let map = Map::new(&file, page(), false).unwrap();
        file.set_len(0).unwrap();
        let mut bytes = [1; 4];
        map.read(0, &mut bytes);
        assert!(map.is_lost());
        assert_eq!(bytes, [0; 4]);
    }

    #[test]
    fn words_that_belong_together_become_a_copy_together() {
        fn mark(copy: NonNull<u8>) {
            // SAFETY: the copy has two pages.
            unsafe { copy.as_ptr().add(8).write(7) };
        }
        let file = tempfile::tempfile().unwrap();
        file.set_len(2 * page() as u64).unwrap();
        let map = Map::of_words(&file, 2 * page(), true, mark).unwrap();
        map.write(0, b"kept");
        file.set_len(page() as u64).unwrap();
        map.write(page(), b"lost");
        assert!(map.is_lost());
        map.write(0, b"self");
        let mut bytes = [0; 9];
        map.read(0, &mut bytes);
        assert_eq!(&bytes, b"self\0\0\0\0\x07");
        let mut there = [0; 4];
        crate::file::read_up_to_at(&file, &mut there, 0).unwrap();
        assert_eq!(&there, b"kept", "the file has nothing of what came later");
    }

    #[test]
    #[should_panic(expected = "leaves the mapping")]
    fn a_write_beyond_the_end_is_caught() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(4096).unwrap();
        Map::new(&file, 4096, true).unwrap().write(4095, b"ab");
    }
}
