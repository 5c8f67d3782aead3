//! C standard I/O in append mode: `fwrite` and `fflush` for each record.
//!
//! The flush is needed, for without it a record is not in the log when the call returns, and
//! records of several processes would mix where the buffer happens to be full. The buffer is
//! made one byte larger than a record: at the library's own size (4 KiB) a larger record goes out
//! in two calls to `write`, between which another process may write.
//!
//! # Safety
//!
//! A room for unsafe code: the C library's streams. A stream belongs to one appender and is
//! closed once, when that is dropped, before its buffer is freed.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::NonNull;

use crate::error::{Context, Error, Result};
use crate::setting::Setting;
use crate::ways::plain::{PlainFile, whole};
use crate::ways::{Appender, Prepared, Way};

/// The size of the buffer unless a record needs a larger one.
const BUFFER_BYTES: usize = 4096;

pub(crate) struct Stdio;

impl Way for Stdio {
    fn prepare(&self, dir: &Path, setting: &Setting) -> Result<Box<dyn Prepared>> {
        PlainFile::create(dir, setting, |path, bytes| {
            let stream = Stream::open(path, bytes);
            Ok(Box::new(stream.context(|| format!("fopen {}", path.display()))?))
        })
    }
}

struct Stream {
    stream: NonNull<libc::FILE>,
    /// What the stream buffers in; it must outlive the stream.
    _buffer: Box<[u8]>,
}

impl Stream {
    fn open(path: &Path, bytes: usize) -> io::Result<Stream> {
        let path = CString::new(path.as_os_str().as_bytes())?;
        // SAFETY: both arguments are NUL-terminated and live through the call.
        let stream = unsafe { libc::fopen(path.as_ptr(), c"a".as_ptr()) };
        let stream = NonNull::new(stream).ok_or_else(io::Error::last_os_error)?;
        let mut buffer = vec![0_u8; BUFFER_BYTES.max(bytes + 1)].into_boxed_slice();
        let (start, len) = (buffer.as_mut_ptr(), buffer.len());
        let stream = Stream { stream, _buffer: buffer };
        // SAFETY: the stream is open and nothing was done with it yet; the buffer is `len` bytes
        // on the heap that nobody else uses until the stream is closed.
        let result =
            unsafe { libc::setvbuf(stream.stream.as_ptr(), start.cast(), libc::_IOFBF, len) };
        if result == 0 { Ok(stream) } else { Err(io::Error::last_os_error()) }
    }
}

impl Appender for Stream {
    #[inline]
    fn append(&mut self, record: &[u8]) -> Result<()> {
        let stream = self.stream.as_ptr();
        // SAFETY: the stream is open until we are dropped; `record` is that many bytes.
        let written = unsafe { libc::fwrite(record.as_ptr().cast(), 1, record.len(), stream) };
        whole("fwrite", written, record.len())?;
        // SAFETY: the stream is open until we are dropped.
        if unsafe { libc::fflush(stream) } != 0 {
            return Err(Error::os("fflush", io::Error::last_os_error()));
        }
        Ok(())
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: the stream is open and not used again. Nothing is buffered, so nothing can
        // fail that we would have to report.
        let _ = unsafe { libc::fclose(self.stream.as_ptr()) };
    }
}
