//! The blocks of the file, allocated a stretch at a time before somebody writes there.

use std::collections::HashMap;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use rustix::io::{self, Errno};
use vellum_sys::{self as sys, Map};

use super::lock;

/// What is made ready at a time where it is mapped, or where the length of the file is not known:
/// other threads go on meanwhile in what is there.
const STRETCH_BYTES: u64 = 32 << 20;

/// A part of the file whose blocks are there.
#[derive(Debug)]
pub(super) struct Stretch {
    /// Where it starts in the file.
    pub(super) begin: u64,
    /// Bytes in it.
    pub(super) len: u64,
    /// The mapping of it, where pieces are stored through one.
    pub(super) map: Option<Map>,
}

/// The file as a row of stretches.
#[derive(Debug)]
pub(super) struct Ground {
    len: Option<u64>,
    stretch_bytes: u64,
    maps: bool,
    /// Whether blocks are pages: then one thread allocates them no faster ahead than all of them do
    /// when they store, and only [`Ground::prepare`] allocates.
    is_memory: bool,
    /// By number, those that are made.
    stretches: RwLock<HashMap<u64, Arc<Stretch>>>,
    /// Held while a stretch is made.
    making: Mutex<()>,
}

impl Ground {
    /// Ground that is allocated in one call where the length is known.
    pub(super) fn whole(len: Option<u64>) -> Ground {
        Ground::new(len, len.unwrap_or(STRETCH_BYTES).max(1), false, false)
    }

    /// Ground that is allocated and mapped a stretch at a time.
    pub(super) fn mapped(len: Option<u64>, is_memory: bool) -> Ground {
        Ground::new(len, STRETCH_BYTES, true, is_memory)
    }

    fn new(len: Option<u64>, stretch_bytes: u64, maps: bool, is_memory: bool) -> Ground {
        let (stretches, making) = (RwLock::default(), Mutex::default());
        Ground { len, stretch_bytes, maps, is_memory, stretches, making }
    }

    /// Makes everything ready, where the length is known.
    pub(super) fn prepare(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        let len = self.len.unwrap_or(0);
        let mut begin = 0;
        while begin < len {
            let end = len.min(begin.saturating_add(self.stretch_bytes));
            if self.is_memory {
                sys::file::allocate_range(fd, begin, end - begin)?;
            }
            self.ready(fd, begin, end)?;
            begin = end;
        }
        Ok(())
    }

    /// Makes the bytes from `begin` to `end` ready.
    pub(super) fn ready(&self, fd: BorrowedFd<'_>, mut begin: u64, end: u64) -> io::Result<()> {
        while begin < end {
            let stretch = self.stretch(fd, begin)?;
            begin = stretch.begin + stretch.len;
        }
        Ok(())
    }

    /// The stretch with the byte at `offset`, made now where nobody has made it yet.
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
        let map = match self.maps && is_allocated {
            true => Some(Map::at(fd, begin, (end - begin) as usize, true)?),
            false => None,
        };
        if !is_allocated && self.len.is_some() && sys::file::len(fd)? < end {
            // Writes that make a file longer take turns.
            sys::file::set_len(fd, end)?;
        }
        Ok(Stretch { begin, len: end - begin, map })
    }

    /// Gives a stretch its blocks; false where they are not to be had ahead, so that the writes
    /// will tell.
    fn allocate(&self, fd: BorrowedFd<'_>, begin: u64, end: u64) -> io::Result<bool> {
        // The last byte is enough to make the file long enough for a mapping. To set the length
        // would cut off what somebody writes behind it at this moment.
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
