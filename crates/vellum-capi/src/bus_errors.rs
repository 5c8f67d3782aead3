//! Storage that fails under a mapping.

use std::ffi::c_int;

use crate::boundary::guard;
use crate::status::vellum_status::VELLUM_OK;

/// Has Vellum answer a SIGBUS that its own mappings raise, in a program that handles the signal
/// itself.
///
/// Such a signal means that storage failed under a mapping: the filesystem was shut down, the
/// device is gone, a program has cut a file. Where the signal has its default action when the first
/// log is opened, Vellum answers it without this call, and the function that has stored returns an
/// error. A program that sets a handler of its own calls this afterwards. Then Vellum's handler
/// comes first, and passes faults outside of Vellum's mappings on to the program's.
///
/// Calling it again changes nothing. Errors: VELLUM_IO.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_guard_bus_errors() -> c_int {
    guard(|| {
        vellum::guard_bus_errors()?;
        Ok(VELLUM_OK)
    })
}
