//! A loop device over a file.

use std::fs::{File, OpenOptions};
use std::io;
use std::time::{Duration, Instant};

use super::sys;

/// For so long others may take each device that is free.
const BUSY_MAX: Duration = Duration::from_secs(5);

/// How a loop device shows a file.
#[derive(Clone, Copy, Debug, Default)]
pub struct LoopShape {
    /// Bytes of a logical block; with 0 the kernel chooses.
    pub block_len: u32,
    /// Whether the pages of the file are left out of the page cache.
    pub is_direct: bool,
}

/// Puts `file` behind a loop device that is free, and returns that with its number. `open` opens
/// the device of a number. The device lets go of the file when it is neither open nor mounted any
/// more.
pub fn attach_loop(
    file: &File,
    shape: LoopShape,
    open: impl Fn(u32) -> io::Result<File>,
) -> io::Result<(File, u32)> {
    let control = OpenOptions::new().read(true).write(true).open("/dev/loop-control")?;
    let deadline = Instant::now() + BUSY_MAX;
    loop {
        let number = sys::free_loop_device(&control)?;
        let device = open(number)?;
        match sys::configure_loop_device(&device, file, shape.block_len, shape.is_direct) {
            Ok(()) => return Ok((device, number)),
            // Somebody else has taken it.
            Err(error)
                if error.kind() == io::ErrorKind::ResourceBusy && Instant::now() < deadline => {}
            Err(error) => return Err(error),
        }
    }
}
