//! What a file is before it is written into.

use std::fmt;
use std::fs::File;
use std::path::Path;
use std::str::FromStr;
use std::time::Instant;

use rustix::fs::{FallocateFlags, fallocate};

use super::trouble::{Tried, Trying};
use crate::error::{Error, Result, named};
use crate::suite::commit::write_zeros;

/// What a file is before it is written into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Empty: it grows.
    Emptied,
    /// As long as it is to be, without blocks.
    Sparse,
    /// As long as it is to be, with blocks that were never written.
    Preallocated,
    /// Written with zeros and synced; its pages are in the page cache.
    Written,
}

impl State {
    /// All of them.
    pub const ALL: [State; 4] =
        [State::Emptied, State::Sparse, State::Preallocated, State::Written];

    /// The name as it is written on a command line and in a report.
    pub const fn as_str(self) -> &'static str {
        match self {
            State::Emptied => "emptied",
            State::Sparse => "sparse",
            State::Preallocated => "preallocated",
            State::Written => "written",
        }
    }

    /// Makes the file at `path`, to be `len` bytes long. Returns it with how many nanoseconds that
    /// took.
    pub(super) fn make(self, path: &Path, len: u64) -> Tried<(File, u64)> {
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

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for State {
    type Err = Error;

    fn from_str(text: &str) -> Result<State> {
        named(State::ALL, State::as_str, text, "is not a state of a file")
    }
}
