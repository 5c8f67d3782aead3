//! Storage that fails under a mapping: an error, and not a signal that ends the process.

use crate::Result;
use crate::error::OsResult;
use crate::sys;

/// Has Vellum answer a `SIGBUS` that its own mappings raise, in a program that handles the signal
/// itself.
///
/// A store through a mapping raises `SIGBUS` where storage fails under it: on a filesystem that was
/// shut down, on a device that is gone, in a file that another program has cut. Vellum answers this
/// signal for the addresses of its own mappings, and the call that has stored returns an error of
/// kind [`Io`](crate::ErrorKind::Io), [`NoSpace`](crate::ErrorKind::NoSpace) or
/// [`Corrupt`](crate::ErrorKind::Corrupt).
///
/// It does so by itself where the signal has its default action when the first log is opened. A
/// program that has set a handler of its own before keeps it, and calls this function if it wants
/// both: then Vellum's handler comes first, and passes everything on that is no fault of its own
/// mappings. A program that sets its handler later calls it after that.
///
/// Calling it again changes nothing. It may be called by any thread, at any time.
///
/// # Errors
///
/// [`Io`](crate::ErrorKind::Io) where the system does not let the process set a handler.
pub fn guard_bus_errors() -> Result<()> {
    sys::guard::chain().or_os("set a handler for SIGBUS in", "this process")
}
