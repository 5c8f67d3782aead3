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

/// Whether a standard descriptor may be free; found out by the first call.
static MAY_BE_FREE: AtomicBool = AtomicBool::new(true);

/// Has `make` make a descriptor, and returns it with a number above the standard ones.
///
/// A process that closes its standard descriptors after that gives the next file one of them for a
/// moment, and no later one.
pub fn above_standard(make: impl FnOnce() -> io::Result<OwnedFd>) -> io::Result<OwnedFd> {
    let plugs = MAY_BE_FREE.load(Ordering::Relaxed).then(plugs);
    let fd = make()?;
    let is_low = fd.as_raw_fd() < FIRST;
    if is_low || plugs.is_some_and(|plugs| plugs.is_empty()) {
        MAY_BE_FREE.store(is_low, Ordering::Relaxed);
    }
    if is_low { io::fcntl_dupfd_cloexec(&fd, FIRST) } else { Ok(fd) }
}

/// Takes the standard descriptors that are free, with something that can be neither read nor
/// written.
fn plugs() -> Vec<OwnedFd> {
    let plug = || fs::open("/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok();
    std::iter::from_fn(plug).take_while(|fd| fd.as_raw_fd() < FIRST).collect()
}
