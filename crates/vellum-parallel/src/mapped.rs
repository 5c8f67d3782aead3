//! Two write paths into the page cache at the same time: `pwrite`, and stores through a mapping.
//!
//! The kernel locks a file for each buffered write. So one of several threads writes, and the
//! others would wait. Here they store through a shared mapping instead, which takes no such lock.
//!
//! A write is faster than a store: it needs no zeroed page and no page fault. So the permit to
//! write goes first. No more threads store than there are processors beside the writer's: one more
//! would take the processor away from the writer.
//!
//! In memory (tmpfs) a page costs more than the bytes in it. So there the kernel is asked for huge
//! pages, one by one by the thread that comes first, and all threads store into them. A mount
//! without huge pages has these too. Where they are refused, the two paths remain.
//!
//! Pages are faulted in before anything is stored into them. So a full disk is an error, and does
//! not kill the process. A batch of pages is small enough that their zeros are still in the
//! processor's cache when the bytes follow.

use std::os::fd::BorrowedFd;
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;

use rustix::io;
use vellum_sys::{self as sys, HUGE_PAGE_BYTES, Map};

use super::lock;
use super::preallocation::{Preallocation, Stretch};

/// Bytes faulted in at a time: measured best among 64 KiB to 2 MiB.
const BATCH_BYTES: u64 = 256 << 10;
/// Bytes written under one permit, while other threads may want it.
const WRITE_BYTES: u64 = 2 << 20;

/// Both write paths into the page cache of a file.
#[derive(Debug)]
pub(super) struct Mapped {
    pub(super) preallocation: Preallocation,
    permits: Permits,
}

/// One permit to write, and some to store.
#[derive(Debug)]
struct Permits {
    given: Mutex<Given>,
    /// Signalled whenever a permit is returned.
    returned: Condvar,
    /// How many may store at the same time.
    stores_max: usize,
}

#[derive(Debug, Default)]
struct Given {
    is_written: bool,
    stores: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Write,
    Store,
}

/// A permit that a thread holds; returned when dropped.
struct Permit<'a> {
    permits: &'a Permits,
    kind: Kind,
}

impl Permits {
    fn new() -> Permits {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        Permits { given: Mutex::default(), returned: Condvar::new(), stores_max: processors - 1 }
    }

    /// Takes the permit to write if it is free, else one to store; waits while there is none.
    fn take(&self) -> Permit<'_> {
        let mut given = lock(&self.given);
        loop {
            if !given.is_written {
                given.is_written = true;
                return Permit { permits: self, kind: Kind::Write };
            }
            if given.stores < self.stores_max {
                given.stores += 1;
                return Permit { permits: self, kind: Kind::Store };
            }
            given = self.returned.wait(given).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        let mut given = lock(&self.permits.given);
        match self.kind {
            Kind::Write => given.is_written = false,
            Kind::Store => given.stores -= 1,
        }
        self.permits.returned.notify_one();
    }
}

impl Mapped {
    pub(super) fn new(len: Option<u64>, is_memory: bool) -> Mapped {
        Mapped { preallocation: Preallocation::mapped(len, is_memory), permits: Permits::new() }
    }

    /// Writes `bytes` at `offset`.
    pub(super) fn write(
        &self,
        fd: BorrowedFd<'_>,
        mut offset: u64,
        mut bytes: &[u8],
    ) -> io::Result<()> {
        while !bytes.is_empty() {
            let stretch = self.preallocation.stretch(fd, offset)?;
            let len = self.write_some(fd, &stretch, offset, bytes)?;
            offset += len as u64;
            bytes = &bytes[len..];
        }
        Ok(())
    }

    /// Writes the first part of `bytes` on the path that is free; returns its length.
    fn write_some(
        &self,
        fd: BorrowedFd<'_>,
        stretch: &Stretch,
        offset: u64,
        bytes: &[u8],
    ) -> io::Result<usize> {
        let place = offset - stretch.begin;
        let part = |unit: u64| {
            let end = ((place / unit + 1) * unit).min(stretch.len);
            &bytes[..(end - place).min(bytes.len() as u64) as usize]
        };
        let is_huge = self.preallocation.is_huge(fd, stretch, place);
        if let Some(map) = stretch.map.as_ref().filter(|_| is_huge) {
            let now = part(HUGE_PAGE_BYTES as u64);
            if store(map, place as usize, now) {
                return Ok(now.len());
            }
        }
        let permit = self.permits.take();
        let now = match (permit.kind, &stretch.map) {
            (Kind::Store, Some(map)) => {
                let now = part(BATCH_BYTES);
                if store(map, place as usize, now) {
                    return Ok(now.len());
                }
                // An old kernel, no page to be had, or storage that fails: a write returns an
                // error.
                now
            }
            _ => part(WRITE_BYTES),
        };
        sys::file::write_all_at(fd, now, offset)?;
        Ok(now.len())
    }
}

/// Stores bytes whose pages can be had; false where a write has to say why not.
fn store(map: &Map, place: usize, bytes: &[u8]) -> bool {
    if map.try_populate(place, bytes.len()).is_err() {
        return false;
    }
    map.write(place, bytes);
    !map.is_lost()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_permit_to_write_goes_first_and_all_are_returned() {
        let permits = Permits { stores_max: 1, ..Permits::new() };
        let writer = permits.take();
        let storer = permits.take();
        assert_eq!((writer.kind, storer.kind), (Kind::Write, Kind::Store));
        thread::scope(|scope| {
            let third = scope.spawn(|| permits.take().kind);
            drop(writer);
            assert_eq!(third.join().unwrap(), Kind::Write);
        });
        drop(storer);
        let given = lock(&permits.given);
        assert!(!given.is_written && given.stores == 0);
    }

    #[test]
    fn one_processor_stores_nothing() {
        let permits = Permits { stores_max: 0, ..Permits::new() };
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..100).for_each(|_| assert_eq!(permits.take().kind, Kind::Write)));
            }
        });
    }
}
