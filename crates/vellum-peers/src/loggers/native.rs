//! Loggers in C++.
//!
//! - spdlog: a file sink under a lock, written by the threads that log or, behind a queue, by a
//!   thread of its own.
//! - Quill: a queue for each thread, and a thread that formats and writes.
//!
//! # Safety
//!
//! A room for unsafe code: calls to `spdlog.cpp` and `quill.cpp`. A pointer that `open` returned is
//! good until `close`, which is called once, and `log` may be called from any thread.
#![allow(unsafe_code)]

use std::ffi::{CString, c_char, c_uint, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::NonNull;

use vellum_bench::loggers::{Contender, Logger, Session};
use vellum_bench::{Error, Result};

use super::{FILE_NAME, line};

#[cfg(has_spdlog)]
unsafe extern "C" {
    safe fn vellum_peers_spdlog_version() -> c_uint;
    fn vellum_peers_spdlog_open(path: *const c_char, is_async: bool) -> *mut c_void;
    fn vellum_peers_spdlog_log(peer: *mut c_void, text: *const c_char, len: usize);
    fn vellum_peers_spdlog_close(peer: *mut c_void);
}

#[cfg(has_quill)]
unsafe extern "C" {
    safe fn vellum_peers_quill_version() -> c_uint;
    fn vellum_peers_quill_open(path: *const c_char, is_async: bool) -> *mut c_void;
    fn vellum_peers_quill_log(peer: *mut c_void, text: *const c_char, len: usize);
    fn vellum_peers_quill_close(peer: *mut c_void);
}

/// `basic_file_sink_mt`.
#[cfg(has_spdlog)]
pub(super) fn spdlog(is_async: bool) -> Box<dyn Contender> {
    Box::new(Native {
        name: if is_async { "spdlog-async" } else { "spdlog" },
        library: "spdlog",
        is_async,
        functions: Functions {
            version: vellum_peers_spdlog_version,
            open: vellum_peers_spdlog_open,
            log: vellum_peers_spdlog_log,
            close: vellum_peers_spdlog_close,
        },
    })
}

/// `FileSink`, with the options that Quill has by default.
#[cfg(has_quill)]
pub(super) fn quill() -> Box<dyn Contender> {
    Box::new(Native {
        name: "quill",
        library: "quill",
        is_async: true,
        functions: Functions {
            version: vellum_peers_quill_version,
            open: vellum_peers_quill_open,
            log: vellum_peers_quill_log,
            close: vellum_peers_quill_close,
        },
    })
}

struct Native {
    name: &'static str,
    library: &'static str,
    is_async: bool,
    functions: Functions,
}

/// The functions of a logger's source in C++.
#[derive(Clone, Copy)]
struct Functions {
    version: extern "C" fn() -> c_uint,
    open: unsafe extern "C" fn(*const c_char, bool) -> *mut c_void,
    log: unsafe extern "C" fn(*mut c_void, *const c_char, usize),
    close: unsafe extern "C" fn(*mut c_void),
}

impl Contender for Native {
    fn name(&self) -> &str {
        self.name
    }

    fn software(&self) -> Option<String> {
        // Two decimal digits for each part.
        let (library, version) = (self.library, (self.functions.version)());
        Some(format!("{library} {}.{}.{}", version / 10_000, version / 100 % 100, version % 100))
    }

    fn open(&self, dir: &Path, _bytes: usize) -> Result<Box<dyn Logger>> {
        let path = dir.join(FILE_NAME);
        let c_path = CString::new(path.as_os_str().as_bytes())
            .map_err(|error| Error::failed(error.to_string()))?;
        // SAFETY: the path is NUL-terminated and lives through the call.
        let peer = unsafe { (self.functions.open)(c_path.as_ptr(), self.is_async) };
        let failed = || Error::failed(format!("{} can't open {}", self.library, path.display()));
        let pointer = NonNull::new(peer).ok_or_else(failed)?;
        Ok(Box::new(Peer { pointer, functions: self.functions }))
    }
}

struct Peer {
    pointer: NonNull<c_void>,
    functions: Functions,
}

// SAFETY: a logger of Quill, or of spdlog with a sink of the kind `_mt`, is for any thread.
unsafe impl Sync for Peer {}

impl Logger for Peer {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(Thread(self)))
    }

    fn finish(self: Box<Self>) -> Result<u64> {
        // A queue blocks when it is full, so nothing is dropped.
        Ok(0)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // SAFETY: it is open and not used again.
        unsafe { (self.functions.close)(self.pointer.as_ptr()) }
    }
}

struct Thread<'a>(&'a Peer);

impl Session for Thread<'_> {
    fn log(&mut self, record: &[u8]) -> Result<()> {
        let (text, Peer { pointer, functions }) = (line(record), self.0);
        // SAFETY: the logger is open while it is borrowed; the text is that many bytes.
        unsafe { (functions.log)(pointer.as_ptr(), text.as_ptr().cast(), text.len()) };
        Ok(())
    }
}
