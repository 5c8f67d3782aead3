//! The engines that have many writes in flight.

use std::path::Path;

use crate::error::Result;
use crate::names::named;
use crate::queue::{AioQueue, ThreadQueue, UringQueue, WriteQueue, open_direct};

named! {
    /// How writes are handed to the kernel.
    #[non_exhaustive]
    pub enum ImageEngine, "is not an engine" {
        /// Linux AIO: `io_submit`, `io_getevents`.
        Aio = "aio",
        /// io_uring.
        Uring = "io_uring",
        /// A pool of threads with one `pwrite` each.
        Threads = "threads",
    }
}

impl ImageEngine {
    /// A queue of `depth` writes of at most `bytes`, into the file `path`.
    pub(super) fn queue(
        self,
        path: &Path,
        depth: usize,
        bytes: usize,
    ) -> Result<Box<dyn WriteQueue>> {
        let file = open_direct(path)?;
        Ok(match self {
            ImageEngine::Aio => Box::new(AioQueue::new(file, depth, bytes)?),
            ImageEngine::Uring => Box::new(UringQueue::new(file, depth, bytes)?),
            ImageEngine::Threads => Box::new(ThreadQueue::new(file, depth, bytes)?),
        })
    }
}
