//! The state of a file before it is written into.

use std::fs::File;
use std::path::Path;
use std::time::Instant;

use rustix::fs::{FallocateFlags, fallocate};

use crate::error::{Context, Result};
use crate::names::named;
use crate::suite::commit::write_zeros;

named! {
    /// The state of a file before it is written into.
    pub enum State, "is not a state of a file" {
        /// Empty: it grows.
        Emptied = "emptied",
        /// As long as it is to be, without blocks.
        Sparse = "sparse",
        /// As long as it is to be, with blocks that were never written.
        Preallocated = "preallocated",
        /// Written with zeros and synced; its pages are in the page cache.
        Written = "written",
    }
}

impl State {
    /// Makes the file at `path`, to be `len` bytes long. Returns it with how many nanoseconds that
    /// took.
    pub(super) fn make(self, path: &Path, len: u64) -> Result<(File, u64)> {
        let begun = Instant::now();
        let mut options = File::options();
        let file = options.read(true).write(true).create_new(true).open(path);
        let file = file.trying("create the file")?;
        match self {
            State::Emptied => {}
            State::Sparse => file.set_len(len).trying("ftruncate")?,
            State::Preallocated => {
                fallocate(&file, FallocateFlags::empty(), 0, len).trying("fallocate")?;
            }
            State::Written => write_zeros(&file, len).trying("write zeros")?,
        }
        Ok((file, begun.elapsed().as_nanos() as u64))
    }
}
