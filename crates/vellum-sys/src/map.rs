//! Shared mappings of files: bytes that other processes may change at any time.
//!
//! # Safety
//!
//! A [`Map`] owns its address range and never gives out a Rust reference to plain bytes in it,
//! because other processes write there. Bytes are copied in and out through raw pointers after a
//! bounds check; a racing copy may see a mixture of old and new bytes, never anything else.
//! A store into a page that has no block behind it raises `SIGBUS`, and so does a load from a page
//! beyond the end of the file: callers touch only pages whose blocks they have allocated.

use std::ffi::c_void;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr::{self, NonNull};

use rustix::io::{self, Errno};
use rustix::mm::{self, Advice, MapFlags, ProtFlags};

use crate::advice;

/// A file, or the beginning of one, mapped into this process.
#[derive(Debug)]
pub struct Map {
    start: NonNull<u8>,
    len: usize,
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

    /// As [`Map::new`], from `offset` on, which is a multiple of the page size.
    pub fn at(file: impl AsFd, offset: u64, len: usize, writable: bool) -> io::Result<Map> {
        let protection =
            if writable { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
        // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing of ours.
        let start =
            unsafe { mm::mmap(ptr::null_mut(), len, protection, MapFlags::SHARED, file, offset) }?;
        let start = NonNull::new(start.cast()).ok_or(Errno::NOMEM)?;
        Ok(Map { start, len })
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
    #[inline]
    pub fn write(&self, offset: usize, bytes: &[u8]) {
        assert!(offset <= self.len && bytes.len() <= self.len - offset, "write leaves the mapping");
        // SAFETY: the target range was just checked to lie in the mapping, and `bytes` is memory of
        // this process that no safe code can place inside it.
        unsafe {
            let target = self.start.as_ptr().add(offset);
            ptr::copy_nonoverlapping(bytes.as_ptr(), target, bytes.len());
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

    /// Writes the bytes from `begin` to `end` to the same offsets of `file`, going on after short
    /// writes. What other processes store there meanwhile is written or not.
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
                    errno => return Err(errno.unwrap_or(Errno::IO)),
                },
            }
        }
        Ok(())
    }

    /// Makes the pages of a range present and writable, so that stores there do not fault.
    ///
    /// A hint: kernels before 5.14 do not know it and pages are faulted in one by one.
    pub fn populate(&self, offset: usize, len: usize) {
        let _ = self.try_populate(offset, len);
    }

    /// As [`Map::populate`], with the kernel's answer: `Ok` means that stores into the range need
    /// no block or page any more. `Err` also where the system only says that it has done it.
    pub fn try_populate(&self, offset: usize, len: usize) -> io::Result<()> {
        let page = rustix::param::page_size();
        let begin = offset / page * page;
        let limit = offset.saturating_add(len).min(self.len);
        if begin >= limit {
            return Ok(());
        }
        // SAFETY: the range lies in the mapping, and populating changes no byte of it.
        unsafe {
            let start = self.start.as_ptr().add(begin);
            advice::give(start.cast::<c_void>(), limit - begin, Advice::LinuxPopulateWrite)
        }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `new`, and whoever copies through it borrows `self`.
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

    #[test]
    #[should_panic(expected = "leaves the mapping")]
    fn a_write_beyond_the_end_is_caught() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(4096).unwrap();
        Map::new(&file, 4096, true).unwrap().write(4095, b"ab");
    }
}
