//! io_uring with several writes under way, past the page cache, by one thread.

use super::cache::Cache;
use super::case::{Job, Sample, Site};
use super::clock::once;
use super::source::Source;
use super::state::State;
use super::trouble::{Tried, Trying};
use super::verify;
use crate::error::Result;
use crate::ways::io_uring::WriteQueue;

pub(super) struct Ring {
    pub(super) depth: usize,
    pub(super) state: State,
    pub(super) piece_bytes: usize,
}

impl Job for Ring {
    fn run(&self, site: &Site<'_>) -> Tried<Sample> {
        let (made, preparation) = self.state.make(&site.file(), site.bytes)?;
        let file = Cache::Direct.open(&site.file()).trying("open the file")?;
        let source = || Source::new(self.piece_bytes, site.round);
        let slots = std::iter::repeat_with(source).take(self.depth).collect();
        let mut queue = WriteQueue::new(&file, slots).trying("io_uring_setup")?;
        let write = once(|| queue.write_all(site.bytes, self.piece_bytes).trying("io_uring"))?;
        let sync = once(|| made.sync_all().trying("fsync"))?;
        Ok(Sample::new(preparation, write, sync))
    }

    fn verify(&self, site: &Site<'_>) -> Result<()> {
        verify::stamped(&site.file(), 0, site.bytes, site.round)
    }
}
