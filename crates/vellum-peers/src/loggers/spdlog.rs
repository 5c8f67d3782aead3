//! spdlog, the C++ logger: a file sink under a lock, written by the threads that log or, behind a
//! queue, by a thread of its own.
//!
//! # Safety
//!
//! A room for unsafe code: calls to `spdlog.cpp`. A pointer that `open` returned is good until
//! `close`, which is called once, and `log` may be called from any thread.
#![allow(unsafe_code)]

use std::ffi::{CString, c_char, c_uint, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::NonNull;

use vellum_bench::loggers::{Contender, Logger, Session};
use vellum_bench::{Error, Result};

use super::{FILE_NAME, line};

unsafe extern "C" {
    safe fn vellum_peers_spdlog_version() -> c_uint;
    fn vellum_peers_spdlog_open(path: *const c_char, is_async: bool) -> *mut c_void;
    fn vellum_peers_spdlog_log(peer: *mut c_void, text: *const c_char, len: usize);
    fn vellum_peers_spdlog_close(peer: *mut c_void);
}

/// `basic_file_sink_mt`.
pub(super) struct Spdlog {
    pub(super) is_async: bool,
}

impl Contender for Spdlog {
    fn name(&self) -> &str {
        if self.is_async { "spdlog-async" } else { "spdlog" }
    }

    fn software(&self) -> Option<String> {
        // Two decimal digits for each part.
        let version = vellum_peers_spdlog_version();
        Some(format!("spdlog {}.{}.{}", version / 10_000, version / 100 % 100, version % 100))
    }

    fn open(&self, dir: &Path, _bytes: usize) -> Result<Box<dyn Logger>> {
        let path = dir.join(FILE_NAME);
        let c_path = CString::new(path.as_os_str().as_bytes())
            .map_err(|error| Error::failed(error.to_string()))?;
        // SAFETY: the path is NUL-terminated and lives through the call.
        let peer = unsafe { vellum_peers_spdlog_open(c_path.as_ptr(), self.is_async) };
        let failed = || Error::failed(format!("spdlog can't open {}", path.display()));
        Ok(Box::new(Peer(NonNull::new(peer).ok_or_else(failed)?)))
    }
}

struct Peer(NonNull<c_void>);

// SAFETY: a logger of spdlog whose sink is of the kind `_mt` may be used from any thread.
unsafe impl Sync for Peer {}

impl Logger for Peer {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(Thread(self)))
    }

    fn finish(self: Box<Self>) -> Result<u64> {
        // The queue blocks when it is full, so nothing is dropped.
        Ok(0)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // SAFETY: it is open and not used again.
        unsafe { vellum_peers_spdlog_close(self.0.as_ptr()) }
    }
}

struct Thread<'a>(&'a Peer);

impl Session for Thread<'_> {
    fn log(&mut self, record: &[u8]) -> Result<()> {
        let text = line(record);
        // SAFETY: the logger is open while it is borrowed; the text is that many bytes.
        unsafe { vellum_peers_spdlog_log(self.0.0.as_ptr(), text.as_ptr().cast(), text.len()) };
        Ok(())
    }
}
