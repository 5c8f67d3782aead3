//! A file mapped shared, as a whole or in parts that threads store into at the same time.
//!
//! # Safety
//!
//! A room for unsafe code. The mapping is reached through raw copies only, never by a reference.
//! Each store is checked against its length. Parts are disjoint and borrow the map, so no two
//! threads store to the same place through one of them, and it outlives them.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::os::fd::AsRawFd;
use std::ptr::{self, NonNull};

use rustix::mm::Advice;
use vellum_sys::advice;

use super::checked;

/// A file mapped shared: each store is in the file.
pub(crate) struct FileMap {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping belongs to no thread, and a thread that stores into it has it exclusively.
unsafe impl Send for FileMap {}

impl FileMap {
    /// Maps the first `len` bytes of the file, which no process must shorten meanwhile: a store
    /// beyond its end kills the process.
    pub(crate) fn new(file: &File, len: usize) -> io::Result<FileMap> {
        FileMap::map(file, 0, len, libc::MAP_SHARED)
    }

    /// Maps `len` bytes of the file from `offset`, which a page begins at.
    pub(crate) fn at(file: &File, offset: u64, len: usize) -> io::Result<FileMap> {
        FileMap::map(file, offset, len, libc::MAP_SHARED)
    }

    /// Must never pass for writing a file: the stores stay in this process.
    #[cfg(test)]
    pub(crate) fn private(file: &File, len: usize) -> io::Result<FileMap> {
        FileMap::map(file, 0, len, libc::MAP_PRIVATE)
    }

    fn map(file: &File, offset: u64, len: usize, flags: libc::c_int) -> io::Result<FileMap> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let offset = libc::off_t::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)?;
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
        let start = unsafe {
            libc::mmap(ptr::null_mut(), len, protection, flags, file.as_raw_fd(), offset)
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::Other)?;
        Ok(FileMap { start, len })
    }

    /// Stores `bytes` at `offset` and waits until they have reached the device.
    pub(crate) fn store_and_sync(&mut self, offset: usize, bytes: &[u8]) -> io::Result<()> {
        self.whole().store(offset, bytes);
        let page = offset & !(rustix::param::page_size() - 1);
        // SAFETY: the range is within the mapping (asserted by `store`), and a page begins within
        // it where the page of its offset does.
        let result = unsafe {
            let len = offset + bytes.len() - page;
            libc::msync(self.start.as_ptr().add(page).cast(), len, libc::MS_SYNC)
        };
        checked(result).map(drop)
    }

    /// All of it.
    pub(crate) fn whole(&mut self) -> MapPart<'_> {
        MapPart { start: self.start, len: self.len, map: PhantomData }
    }

    /// Parts of these lengths, one behind the other from the beginning.
    pub(crate) fn parts(&mut self, lens: impl Iterator<Item = usize>) -> Vec<MapPart<'_>> {
        let mut rest = self.whole();
        lens.map(|len| rest.take(len)).collect()
    }
}

impl Drop for FileMap {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, of this length, and no reference into it exists.
        let _ = unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

/// A part of a mapping that is one thread's to store into.
pub(crate) struct MapPart<'a> {
    start: NonNull<u8>,
    len: usize,
    map: PhantomData<&'a mut FileMap>,
}

// SAFETY: a part is the only one that leads to its bytes, as a mutable slice would be.
unsafe impl Send for MapPart<'_> {}

impl<'a> MapPart<'a> {
    /// Takes the first `len` bytes off.
    fn take(&mut self, len: usize) -> MapPart<'a> {
        assert!(len <= self.len);
        let first = MapPart { start: self.start, len, map: PhantomData };
        // SAFETY: it is within the mapping, or right behind its end.
        self.start = unsafe { self.start.add(len) };
        self.len -= len;
        first
    }

    /// Stores `bytes` at `offset` of the part.
    pub(crate) fn store(&mut self, offset: usize, bytes: &[u8]) {
        assert!(offset.checked_add(bytes.len()).is_some_and(|end| end <= self.len));
        // SAFETY: the range is within the part (asserted), of which no reference exists.
        unsafe {
            let place = self.start.as_ptr().add(offset);
            ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len());
        }
    }

    /// `MADV_POPULATE_WRITE`: has the kernel make `len` bytes from `offset` ready to be stored to,
    /// in one call instead of a fault for each page. Both are whole pages. An error also where the
    /// system only says that it has done so.
    pub(crate) fn populate(&mut self, offset: usize, len: usize) -> io::Result<()> {
        assert!(offset.checked_add(len).is_some_and(|end| end <= self.len));
        // SAFETY: the range is within the part (asserted); its content stays as it is.
        unsafe {
            let place = self.start.as_ptr().add(offset);
            advice::give(place.cast(), len, Advice::LinuxPopulateWrite)?;
        }
        Ok(())
    }
}
