//! Descriptors that no program takes for its standard input, output or error.
//!
//! A daemon may run without descriptors 0, 1 and 2. The kernel gives the lowest free number to the
//! next file, and whatever writes to standard error then writes into that file. So every file,
//! event and piece of memory that Vellum opens passes [`above_standard`].

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{self, Mode, OFlags};
use rustix::io;

/// The lowest number that is not one of the three standard descriptors.
const FIRST: RawFd = 3;

/// Whether this process was once seen to have a standard descriptor free.
static IS_LOW_FREE: AtomicBool = AtomicBool::new(false);

/// Has `make` make a descriptor, and returns it with a number above the standard ones.
///
/// What a log opens first is a directory, which nobody can write to. If that gets a low number for
/// a moment, later files do not get one even for a moment.
pub fn above_standard(make: impl FnOnce() -> io::Result<OwnedFd>) -> io::Result<OwnedFd> {
    let plugs = IS_LOW_FREE.load(Ordering::Relaxed).then(plugs);
    let fd = make()?;
    drop(plugs);
    if fd.as_raw_fd() >= FIRST {
        return Ok(fd);
    }
    IS_LOW_FREE.store(true, Ordering::Relaxed);
    io::fcntl_dupfd_cloexec(&fd, FIRST)
}

/// Takes the standard descriptors that are free, with something that can be neither read nor
/// written.
fn plugs() -> Vec<OwnedFd> {
    let plug = || fs::open("/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok();
    std::iter::from_fn(plug).take_while(|fd| fd.as_raw_fd() < FIRST).collect()
}
