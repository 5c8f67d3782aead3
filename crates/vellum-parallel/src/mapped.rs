//! Into the page cache by two roads at the same time.
//!
//! The kernel locks a file for each buffered write, so of several threads one writes and the others
//! wait. Here those that would wait store through a shared mapping instead, which takes no such
//! lock. Writing is the faster road (no zeros, no page faults), so it is never left empty: whoever
//! finds it free takes it for a stretch of bytes. No more threads store than there are processors
//! for beside the writer; what they did more would be done at the price of the writer's time.
//!
//! Pages are there before anything is stored into them, so that a full disk is an error and not
//! the end of the process; they are faulted in a batch at a time, small enough that the zeros which
//! the kernel put into them are still in the processor's cache when the bytes follow.

use std::os::fd::BorrowedFd;
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;

use rustix::io;
use vellum_sys as sys;

use super::ground::{Ground, Stretch};
use super::lock;

/// What is faulted in at a time: measured best among 64 KiB to 2 MiB.
const BATCH_BYTES: u64 = 256 << 10;
/// What is written at a time while others may want to.
const TURN_BYTES: u64 = 2 << 20;

/// The ways into the page cache of a file.
#[derive(Debug)]
pub(super) struct Mapped {
    pub(super) ground: Ground,
    roads: Roads,
}

/// Who is on which road.
#[derive(Debug)]
struct Roads {
    taken: Mutex<Taken>,
    /// Signalled whenever a road is left.
    left: Condvar,
    /// So many may store at the same time.
    stores_max: usize,
}

#[derive(Debug, Default)]
struct Taken {
    is_written: bool,
    stores: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Road {
    Write,
    Store,
}

/// A road taken; left when dropped.
struct Turn<'a> {
    roads: &'a Roads,
    road: Road,
}

impl Roads {
    fn new() -> Roads {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        Roads { taken: Mutex::default(), left: Condvar::new(), stores_max: processors - 1 }
    }

    /// Takes the road for writing if it is free, else the other; waits while both are full.
    fn take(&self) -> Turn<'_> {
        let mut taken = lock(&self.taken);
        loop {
            if !taken.is_written {
                taken.is_written = true;
                return Turn { roads: self, road: Road::Write };
            }
            if taken.stores < self.stores_max {
                taken.stores += 1;
                return Turn { roads: self, road: Road::Store };
            }
            taken = self.left.wait(taken).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut taken = lock(&self.roads.taken);
        match self.road {
            Road::Write => taken.is_written = false,
            Road::Store => taken.stores -= 1,
        }
        self.roads.left.notify_one();
    }
}

impl Mapped {
    pub(super) fn new(len: Option<u64>, is_memory: bool) -> Mapped {
        Mapped { ground: Ground::mapped(len, is_memory), roads: Roads::new() }
    }

    /// Writes `bytes` at `offset`.
    pub(super) fn write(
        &self,
        fd: BorrowedFd<'_>,
        mut offset: u64,
        mut bytes: &[u8],
    ) -> io::Result<()> {
        while !bytes.is_empty() {
            let stretch = self.ground.stretch(fd, offset)?;
            let len = self.write_some(fd, &stretch, offset, bytes)?;
            offset += len as u64;
            bytes = &bytes[len..];
        }
        Ok(())
    }

    /// Writes the beginning of `bytes` by the road that is free; returns how much that is.
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
        let turn = self.roads.take();
        let now = match (turn.road, &stretch.map) {
            (Road::Store, Some(map)) => {
                let now = part(BATCH_BYTES);
                if map.try_populate(place as usize, now.len()).is_ok() {
                    map.write(place as usize, now);
                    return Ok(now.len());
                }
                // An old kernel, or a page that cannot be had: a write tells which, and kills
                // nobody.
                now
            }
            _ => part(TURN_BYTES),
        };
        sys::file::write_all_at(fd, now, offset)?;
        Ok(now.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_writing_road_is_taken_first_and_both_are_left_again() {
        let roads = Roads { stores_max: 1, ..Roads::new() };
        let writer = roads.take();
        let storer = roads.take();
        assert_eq!((writer.road, storer.road), (Road::Write, Road::Store));
        thread::scope(|scope| {
            let third = scope.spawn(|| roads.take().road);
            drop(writer);
            assert_eq!(third.join().unwrap(), Road::Write);
        });
        drop(storer);
        let taken = lock(&roads.taken);
        assert!(!taken.is_written && taken.stores == 0);
    }

    #[test]
    fn one_processor_stores_nothing() {
        let roads = Roads { stores_max: 0, ..Roads::new() };
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..100).for_each(|_| assert_eq!(roads.take().road, Road::Write)));
            }
        });
    }
}
