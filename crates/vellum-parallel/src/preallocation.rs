//! Blocks of the file, allocated a stretch at a time before a thread writes there.

use std::collections::HashMap;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use rustix::io::{self, Errno};
use vellum_sys::{self as sys, HUGE_PAGE_BYTES, Map};

use super::lock;

/// Bytes allocated at a time where they are mapped, or where the length of the file is not known.
/// Meanwhile other threads continue in the stretches that exist.
const STRETCH_BYTES: u64 = 32 << 20;

/// A part of the file whose blocks are allocated.
#[derive(Debug)]
pub(super) struct Stretch {
    /// Where it starts in the file.
    pub(super) begin: u64,
    /// Bytes in it.
    pub(super) len: u64,
    /// Its mapping, if pieces are stored through one.
    pub(super) map: Option<Map>,
    /// In memory: whether each part that is as long as a huge page is one, once that was tried.
    huge: Vec<OnceLock<bool>>,
}

/// The file as a row of stretches.
#[derive(Debug)]
pub(super) struct Preallocation {
    len: Option<u64>,
    stretch_bytes: u64,
    maps: bool,
    /// Whether the blocks are pages of memory. Then one thread does not allocate them faster ahead
    /// of the writers than the writers do themselves, so only [`Preallocation::prepare`] allocates.
    is_memory: bool,
    /// Those that are allocated, by number.
    stretches: RwLock<HashMap<u64, Arc<Stretch>>>,
    /// Held while a stretch is allocated.
    making: Mutex<()>,
    /// Whether the kernel has refused a huge page.
    has_refused: AtomicBool,
}

impl Preallocation {
    /// Blocks that are allocated in one call where the length is known.
    pub(super) fn whole(len: Option<u64>) -> Preallocation {
        Preallocation::new(len, len.unwrap_or(STRETCH_BYTES).max(1), false, false)
    }

    /// Blocks that are allocated and mapped a stretch at a time.
    pub(super) fn mapped(len: Option<u64>, is_memory: bool) -> Preallocation {
        Preallocation::new(len, STRETCH_BYTES, true, is_memory)
    }

    fn new(len: Option<u64>, stretch_bytes: u64, maps: bool, is_memory: bool) -> Preallocation {
        let (stretches, making) = (RwLock::default(), Mutex::default());
        let has_refused = AtomicBool::new(false);
        Preallocation { len, stretch_bytes, maps, is_memory, stretches, making, has_refused }
    }

    /// Allocates the whole file, if its length is known.
    pub(super) fn prepare(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        let len = self.len.unwrap_or(0);
        let mut begin = 0;
        while begin < len {
            let end = len.min(begin.saturating_add(self.stretch_bytes));
            let stretch = self.stretch(fd, begin)?;
            if self.is_memory {
                self.prepare_pages(fd, &stretch)?;
            }
            begin = end;
        }
        Ok(())
    }

    /// Makes the pages of a stretch in memory, huge ones where that can be.
    fn prepare_pages(&self, fd: BorrowedFd<'_>, stretch: &Stretch) -> io::Result<()> {
        let mut place = 0;
        while place < stretch.len {
            let len = (HUGE_PAGE_BYTES as u64).min(stretch.len - place);
            if !self.is_huge(fd, stretch, place) {
                sys::file::allocate_range(fd, stretch.begin + place, len)?;
            }
            place += len;
        }
        Ok(())
    }

    /// Whether the byte at `place` of a stretch is in a huge page; makes one where it can.
    pub(super) fn is_huge(&self, fd: BorrowedFd<'_>, stretch: &Stretch, place: u64) -> bool {
        let index = place as usize / HUGE_PAGE_BYTES;
        let make = || self.make_huge(fd, stretch, index * HUGE_PAGE_BYTES).is_ok();
        stretch.huge.get(index).is_some_and(|is_huge| *is_huge.get_or_init(make))
    }

    fn make_huge(&self, fd: BorrowedFd<'_>, stretch: &Stretch, place: usize) -> io::Result<()> {
        let map = stretch.map.as_ref().ok_or(Errno::OPNOTSUPP)?;
        if self.has_refused.load(Ordering::Relaxed) {
            return Err(Errno::OPNOTSUPP);
        }
        // The kernel makes no huge page of nothing.
        sys::file::allocate_range(fd, stretch.begin + place as u64, 1)?;
        let made = map.collapse(place);
        // To ask again can cost a search through all memory each time.
        if made.is_err_and(|errno| errno != Errno::AGAIN) {
            self.has_refused.store(true, Ordering::Relaxed);
        }
        made
    }

    /// Allocates the bytes from `begin` to `end`.
    pub(super) fn ready(&self, fd: BorrowedFd<'_>, mut begin: u64, end: u64) -> io::Result<()> {
        while begin < end {
            let stretch = self.stretch(fd, begin)?;
            begin = stretch.begin + stretch.len;
        }
        Ok(())
    }

    /// The stretch that holds the byte at `offset`, allocated now if no thread has done so.
    pub(super) fn stretch(&self, fd: BorrowedFd<'_>, offset: u64) -> io::Result<Arc<Stretch>> {
        let index = offset / self.stretch_bytes;
        if let Some(stretch) = self.made(index) {
            return Ok(stretch);
        }
        let _making = lock(&self.making);
        if let Some(stretch) = self.made(index) {
            return Ok(stretch);
        }
        let stretch = Arc::new(self.make(fd, index * self.stretch_bytes)?);
        let mut stretches = self.stretches.write().unwrap_or_else(PoisonError::into_inner);
        stretches.insert(index, Arc::clone(&stretch));
        Ok(stretch)
    }

    fn made(&self, index: u64) -> Option<Arc<Stretch>> {
        let stretches = self.stretches.read().unwrap_or_else(PoisonError::into_inner);
        stretches.get(&index).cloned()
    }

    fn make(&self, fd: BorrowedFd<'_>, begin: u64) -> io::Result<Stretch> {
        let end = begin.saturating_add(self.stretch_bytes).min(self.len.unwrap_or(u64::MAX));
        let is_allocated = self.allocate(fd, begin, end)?;
        let len = (end - begin) as usize;
        let map = match self.maps && is_allocated {
            true if self.is_memory => Some(Map::at_huge(fd, begin, len)?),
            true => Some(Map::at(fd, begin, len, true)?),
            false => None,
        };
        let huge_pages = if self.is_memory { len / HUGE_PAGE_BYTES } else { 0 };
        let huge = (0..huge_pages).map(|_| OnceLock::new()).collect();
        if !is_allocated && self.len.is_some() && sys::file::len(fd)? < end {
            // Writes that extend a file wait for each other.
            sys::file::set_len(fd, end)?;
        }
        Ok(Stretch { begin, len: end - begin, map, huge })
    }

    /// Allocates the blocks of a stretch; false where that cannot be done ahead, and the writes
    /// will allocate or fail.
    fn allocate(&self, fd: BorrowedFd<'_>, begin: u64, end: u64) -> io::Result<bool> {
        // To allocate the last byte makes the file long enough for a mapping. To set the length
        // could cut off what another thread writes behind it at this moment.
        let from = if self.is_memory { end - 1 } else { begin };
        let allocated = sys::file::check_size_limit(end)
            .and_then(|()| sys::file::allocate_range(fd, from, end - from));
        match allocated {
            Err(Errno::OPNOTSUPP) => Ok(false),
            // The file may end before the stretch does.
            Err(Errno::NOSPC | Errno::FBIG) if self.len.is_none() => Ok(false),
            answer => answer.map(|()| true),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn a_part_of_a_huge_page_is_none_and_disks_have_none() {
        let dir = vellum_testing::memory_scratch();
        let file = tempfile::tempfile_in(dir.path()).unwrap();
        let len = 2 * HUGE_PAGE_BYTES as u64 + 4096;
        let memory = Preallocation::mapped(Some(len), true);
        let stretch = memory.stretch(file.as_fd(), 0).unwrap();
        let is_huge = |place| memory.is_huge(file.as_fd(), &stretch, place);
        assert!(!is_huge(len - 1));
        // Not every system has huge pages, or one to give.
        let first = is_huge(0);
        assert_eq!(is_huge(HUGE_PAGE_BYTES as u64 - 1), first);
        assert!(sys::file::allocated_len(&file).unwrap() >= 4096);
        let disk = Preallocation::mapped(Some(len), false);
        let stretch = disk.stretch(file.as_fd(), 0).unwrap();
        assert!(!disk.is_huge(file.as_fd(), &stretch, 0));
    }
}
