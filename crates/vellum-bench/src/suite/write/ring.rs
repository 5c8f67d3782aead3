//! io_uring with several writes under way, past the page cache, by one thread.

use super::cache::Cache;
use super::clock::once;
use super::entry::{Job, Sample, Site};
use super::source;
use super::state::State;
use crate::error::{Context, Error, Result};
use crate::queue::{UringQueue, WriteQueue};

pub(super) struct Ring {
    pub(super) depth: usize,
    pub(super) state: State,
    pub(super) piece_bytes: usize,
}

impl Job for Ring {
    fn run(&self, site: &Site<'_>) -> Result<Sample> {
        let (made, preparation) = self.state.make(&site.file(), site.bytes)?;
        let file = Cache::Direct.open(&site.file()).trying("open the file")?;
        let memory_bytes = source::memory_bytes(self.piece_bytes);
        let queue = UringQueue::new(file, self.depth, memory_bytes).map_err(in_ring)?;
        let mut queue = queue.registered();
        for slot in 0..self.depth {
            source::draw(queue.buffer(slot), site.round);
        }
        let write = once(|| self.write_all(&mut queue, site).map_err(in_ring))?;
        let sync = once(|| made.sync_all().trying("fsync"))?;
        Ok(Sample::new(preparation, write, sync))
    }
}

impl Ring {
    /// Writes the whole file from its beginning on; returns when all is written.
    fn write_all(&self, queue: &mut dyn WriteQueue, site: &Site<'_>) -> Result<()> {
        let mut free: Vec<usize> = (0..self.depth).rev().collect();
        let mut next = 0;
        while next < site.bytes || free.len() < self.depth {
            while next < site.bytes
                && let Some(slot) = free.pop()
            {
                let len = (site.bytes - next).min(self.piece_bytes as u64) as usize;
                let piece = source::stamp(queue.buffer(slot), next, len, site.round);
                queue.write(slot, piece, next)?;
                next += len as u64;
            }
            queue.wait(&mut free)?;
        }
        Ok(())
    }
}

fn in_ring(error: Error) -> Error {
    error.within("io_uring")
}
