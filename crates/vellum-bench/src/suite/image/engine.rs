//! The interfaces of the kernel that have many writes in flight.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use crate::error::{Error, Result, named};
use crate::queue::{AioQueue, UringQueue, WriteQueue, open_direct};

/// How writes are handed to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ImageEngine {
    /// Linux AIO: `io_submit`, `io_getevents`.
    Aio,
    /// io_uring.
    Uring,
}

impl ImageEngine {
    /// Both, in the order in which they take their turns.
    pub const ALL: [ImageEngine; 2] = [ImageEngine::Aio, ImageEngine::Uring];

    /// The name as it is written on a command line and in a report.
    pub const fn as_str(self) -> &'static str {
        match self {
            ImageEngine::Aio => "aio",
            ImageEngine::Uring => "io_uring",
        }
    }

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
        })
    }
}

impl fmt::Display for ImageEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for ImageEngine {
    type Err = Error;

    fn from_str(text: &str) -> Result<ImageEngine> {
        named(ImageEngine::ALL, ImageEngine::as_str, text, "is not an engine")
    }
}
