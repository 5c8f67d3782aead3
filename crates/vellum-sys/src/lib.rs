//! System calls, and mappings of files.
//!
//! The other crates of Vellum share this one. It has no interface for others: any release may
//! change it. Nothing here knows what a log is.
//!
//! # Safety
//!
//! The modules with `unsafe` code are named below; the compiler refuses it in all others.
//! Conditions that must hold here: a mapping stays in place as long as its [`Map`] lives, it is
//! reached only through the `Map`, and every access is checked against its length first.

#![deny(unsafe_code)]

// Elsewhere the modules are left out, so that this sentence is all that the compiler says.
#[cfg(not(target_os = "linux"))]
compile_error!("Vellum runs on Linux only; docs/filesystems.md says what another system needs");

#[cfg(not(target_pointer_width = "64"))]
compile_error!("Vellum needs a 64-bit machine: its shared words and mappings are 64 bits wide");

#[cfg(not(target_endian = "little"))]
compile_error!("Vellum needs a little-endian machine: numbers in mapped files are little-endian");

#[cfg(target_os = "linux")]
pub mod access;
#[allow(unsafe_code)]
#[cfg(target_os = "linux")]
pub mod advice;
#[cfg(target_os = "linux")]
pub mod aligned;
#[cfg(target_os = "linux")]
pub mod barrier;
#[allow(unsafe_code)]
#[cfg(target_os = "linux")]
pub mod cache;
#[allow(unsafe_code)]
#[cfg(target_os = "linux")]
pub mod checksum;
#[cfg(target_os = "linux")]
pub mod clock;
#[cfg(target_os = "linux")]
pub mod descriptor;
#[cfg(target_os = "linux")]
pub mod device;
#[cfg(target_os = "linux")]
pub mod dir;
#[cfg(target_os = "linux")]
pub mod file;
#[cfg(target_os = "linux")]
pub mod filesystem;
#[allow(unsafe_code)]
#[cfg(target_os = "linux")]
pub mod fork;
#[allow(unsafe_code)]
#[cfg(target_os = "linux")]
pub mod guard;
#[allow(unsafe_code)]
#[cfg(target_os = "linux")]
pub mod inherited;
#[cfg(target_os = "linux")]
pub mod kept;
#[allow(unsafe_code)]
#[cfg(target_os = "linux")]
pub mod lock;
#[allow(unsafe_code)]
#[cfg(target_os = "linux")]
pub mod loop_device;
#[allow(unsafe_code)]
#[cfg(target_os = "linux")]
pub mod map;
#[cfg(target_os = "linux")]
pub mod memory;
#[cfg(target_os = "linux")]
pub mod past_cache;
#[cfg(target_os = "linux")]
pub mod process;
#[allow(unsafe_code)]
#[cfg(target_os = "linux")]
pub mod residence;
#[allow(unsafe_code)]
#[cfg(target_os = "linux")]
pub mod sync;
#[cfg(target_os = "linux")]
pub mod thread_number;
#[cfg(target_os = "linux")]
pub mod wait;

#[cfg(target_os = "linux")]
pub use aligned::AlignedBuffer;
#[cfg(target_os = "linux")]
pub use dir::Dir;
#[cfg(target_os = "linux")]
pub use map::{HUGE_PAGE_BYTES, HugeMemory, Map};

/// The error of this thread's last call into the C library, which has failed.
#[cfg(target_os = "linux")]
fn last_errno() -> rustix::io::Errno {
    let error = std::io::Error::last_os_error();
    rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO)
}
